// RocksDB on files. It finds its caches of a thread by __thread variables, and frees them by a key.
// Argument: a directory.
#include "crowd.h"

#include <memory>
#include <rocksdb/db.h>
#include <rocksdb/utilities/transaction_db.h>
#include <string>

using namespace rocksdb;

static TransactionDB *db;

static std::string key_of(int i, int k) { return std::to_string(i) + "/" + std::to_string(k); }

static long number(const std::string &key, Transaction *t) {
    std::string value;
    Status s = t->GetForUpdate(ReadOptions(), key, &value);
    CHECK(s.ok() || s.IsNotFound());
    return s.ok() ? std::stol(value) : 0;
}

// One that all of them count up, each under its lock.
static void count() {
    WriteOptions write;
    TransactionOptions options;
    options.lock_timeout = 100000;
    std::unique_ptr<Transaction> t(db->BeginTransaction(write, options));
    long n = number("all", t.get());
    usleep(50);
    CHECK(t->Put("all", std::to_string(n + 1)).ok());
    CHECK(t->Commit().ok());
}

static void use(int i) {
    WriteBatch batch;
    std::string value;
    for (int k = 0; k < 20; k++) CHECK(batch.Put(key_of(i, k), std::string(100, 'a' + k)).ok());
    CHECK(db->Write(WriteOptions(), &batch).ok());
    for (int k = 0; k < 20; k++) {
        CHECK(db->Get(ReadOptions(), key_of(i, k), &value).ok());
        CHECK(value == std::string(100, 'a' + k));
        if (k % 5 == 0) usleep(10);
    }
    CHECK(db->Delete(WriteOptions(), key_of(i, 3)).ok());
    CHECK(db->Get(ReadOptions(), key_of(i, 3), &value).IsNotFound());
    if (i % 50 == 0) CHECK(db->Flush(FlushOptions()).ok());
    std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
    int found = 0;
    std::string mine = std::to_string(i) + "/";
    for (it->Seek(mine); it->Valid() && it->key().starts_with(mine); it->Next()) found++;
    CHECK(found == 19);
    count();
}

static int run(int, char **argv) {
    Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    CHECK(TransactionDB::Open(options, TransactionDBOptions(), argv[1], &db).ok());
    crowd_of_threads("RocksDB", use);
    crowd_of_threads("RocksDB, again", use);
    std::string value;
    CHECK(db->Get(ReadOptions(), "all", &value).ok() && std::stoi(value) == 2 * crowd_size());
    delete db;
    return 0;
}
int main(int argc, char **argv) { return argc > 1 ? gort_main(run, argc, argv) : 2; }
