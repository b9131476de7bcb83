# Writes the entries of libgort_split.a. Each public function of the library, whose body is renamed
# to NAME_body, gets an entry that ensures the stack it needs and jumps to the body.
#
#   awk -f entries.awk needs names >entries.S
#
# An entry is a prologue like the compiler's. `needs` counts down to the end of the stack, and the
# guard stands above the end by RESERVE_TRUE (split.h): hence the difference.
BEGIN { reserve = 832; print "\t.text" }
FNR == NR {
    sub(/#.*/, "")
    if (NF >= 2) { need[$1] = $2; args[$1] = $3 + 0 }
    if (NF == 5) { few[$1] = $4; less[$1] = $5 }
    next
}
{
    n = ($1 in need) ? need[$1] : 16384
    over = n > reserve ? n - reserve : 0
    printf "\t.globl %s\n\t.type %s, @function\n\t.p2align 4\n%s:\n\t.cfi_startproc\n", $1, $1, $1
    if ($1 in few) {
        part = less[$1] - reserve
        printf "\tcmpl $%d, %%esi\n\tja 2f\n", few[$1]
        printf "\tleaq -%d(%%rsp), %%r11\n\tcmpq %%fs:0x70, %%r11\n", part
        printf "\tjb 3f\n\tjmp %s_body\n3:\tmovl $%d, %%r10d\n\tmovl $0, %%r11d\n", $1, part
        printf "\tcall __morestack\n\tret\n\tjmp %s_body\n2:\n", $1
    }
    if (over) printf "\tleaq -%d(%%rsp), %%r11\n\tcmpq %%fs:0x70, %%r11\n", over
    else print "\tcmpq %fs:0x70, %rsp"
    printf "\tjb 1f\n\tjmp %s_body\n1:\tmovl $%d, %%r10d\n\tmovl $%d, %%r11d\n", $1, over, args[$1]
    printf "\tcall __morestack\n\tret\n\tjmp %s_body\n", $1
    printf "\t.cfi_endproc\n\t.size %s, .-%s\n", $1, $1
}
END {
    notes = ".note.GNU-split-stack .note.GNU-no-split-stack .note.GNU-stack"
    for (s = split(notes, section, " "); s > 0; s--)
        printf "\t.section %s,\"\",@progbits\n", section[s]
}
