# Every single system call of a run, with every error it can give: see tests/script/io_faults.sh.
FULL=1 exec bash tests/script/io_faults.sh
