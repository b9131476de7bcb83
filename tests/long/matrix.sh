exec tests/port matrix
