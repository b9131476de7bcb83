# The mutants of life.c that are no fence (those: tests/script/model_pairs.sh).
mutant life 'a write goes on without a look at the life' iowait.c 's/return load_rlx(&note->life) == c->life;/return true;/'
mutant life 'a close looks once whether the number is used' hook/fd.c '/^HOOK int close(/,/^}/{/life_ends/{n;s/.*//}}'
