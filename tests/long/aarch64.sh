exec tests/port aarch64
