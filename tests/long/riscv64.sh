exec tests/port riscv64
