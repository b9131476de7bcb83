// gRPC by its synchronous calls: a server, and clients that are a thread each, all kinds of calls.
// grpc serve PORT-FILE; grpc ask ADDRESS THREADS.
#include "echo.grpc.pb.h"
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <grpcpp/grpcpp.h>
#include <thread>
#include <vector>

#define CHECK(x)                                                                 \
    do {                                                                         \
        if (!(x)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
            std::abort();                                                        \
        }                                                                        \
    } while (0)

using grpc::ServerContext, grpc::ClientContext, grpc::Status;
using namespace std::chrono_literals;

static int kernel_threads() {
    char line[256];
    int n = 0;
    std::FILE *f = std::fopen("/proc/self/status", "r");
    while (f && std::fgets(line, sizeof line, f))
        if (std::sscanf(line, "Threads: %d", &n) == 1) break;
    if (f) std::fclose(f);
    return n;
}

static std::atomic<int> most_at_once, now;
static std::atomic<long> answered;
struct Counted {
    Counted() {
        int n = ++now;
        for (int m = most_at_once; n > m && !most_at_once.compare_exchange_weak(m, n);) {}
    }
    ~Counted() {
        now--;
        answered++;
    }
};

class Service final : public echo::Echo::Service {
    Status One(ServerContext *, const echo::Asked *q, echo::Answer *a) override {
        Counted here;
        std::this_thread::sleep_for(2ms);
        if (q->number() < 0) return Status(grpc::StatusCode::OUT_OF_RANGE, q->text());
        a->set_number(q->number() * 2);
        a->set_text(q->text());
        return Status::OK;
    }
    Status Many(ServerContext *, const echo::Asked *q,
                grpc::ServerWriter<echo::Answer> *out) override {
        Counted here;
        for (int i = 0; i < q->number(); i++) {
            echo::Answer a;
            a.set_number(i);
            if (!out->Write(a)) return Status::CANCELLED;
        }
        return Status::OK;
    }
    Status Sum(ServerContext *, grpc::ServerReader<echo::Asked> *in, echo::Answer *a) override {
        Counted here;
        echo::Asked q;
        long sum = 0;
        while (in->Read(&q)) sum += q.number();
        a->set_number(sum);
        return Status::OK;
    }
    Status Talk(ServerContext *,
                grpc::ServerReaderWriter<echo::Answer, echo::Asked> *both) override {
        Counted here;
        echo::Asked q;
        while (both->Read(&q)) {
            echo::Answer a;
            a.set_number(q.number() + 1);
            both->Write(a);
        }
        return Status::OK;
    }
};

static int serve(const char *file) {
    Service service;
    int port = 0;
    grpc::ServerBuilder b;
    b.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    b.RegisterService(&service);
    auto server = b.BuildAndStart();
    CHECK(server && port);
    std::string making = std::string(file) + ".new";
    std::FILE *f = std::fopen(making.c_str(), "w");
    std::fprintf(f, "127.0.0.1:%d\n", port);
    std::fclose(f);
    CHECK(std::rename(making.c_str(), file) == 0);
    int most = 0;
    while (std::getchar() != EOF) most = std::max(most, kernel_threads());
    most = std::max(most, kernel_threads());
    server->Shutdown();
    server->Wait();
    std::printf("%ld answered\n", answered.load());
    std::fprintf(stderr, "server: %d at once, %d kernel threads\n", most_at_once.load(), most);
    return 0;
}

static void client(std::shared_ptr<grpc::Channel> channel, int i) {
    auto stub = echo::Echo::NewStub(channel);
    echo::Asked q;
    echo::Answer a;
    for (int k = 0; k < 4; k++) {
        ClientContext c;
        q.set_number(i * 10 + k);
        q.set_text("thread " + std::to_string(i));
        Status s = stub->One(&c, q, &a);
        if (!s.ok()) std::fprintf(stderr, "%s\n", s.error_message().c_str());
        CHECK(s.ok() && a.number() == 2 * q.number() && a.text() == q.text());
    }
    {
        ClientContext c;
        q.set_number(-1);
        Status s = stub->One(&c, q, &a);
        CHECK(s.error_code() == grpc::StatusCode::OUT_OF_RANGE && s.error_message() == q.text());
    }
    {
        ClientContext c;
        q.set_number(20);
        auto in = stub->Many(&c, q);
        int n = 0;
        while (in->Read(&a)) CHECK(a.number() == n++);
        CHECK(in->Finish().ok() && n == 20);
    }
    {
        ClientContext c;
        auto out = stub->Sum(&c, &a);
        for (int k = 1; k <= 10; k++) {
            q.set_number(k * i);
            CHECK(out->Write(q));
        }
        out->WritesDone();
        CHECK(out->Finish().ok() && a.number() == 55L * i);
    }
    {
        ClientContext c;
        auto both = stub->Talk(&c);
        for (int k = 0; k < 5; k++) {
            q.set_number(k + i);
            CHECK(both->Write(q) && both->Read(&a) && a.number() == k + i + 1);
        }
        both->WritesDone();
        CHECK(both->Finish().ok());
    }
    ClientContext c;
    c.set_deadline(std::chrono::system_clock::now() - 1s);
    CHECK(stub->One(&c, q, &a).error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
}

static int ask(const char *address, int n) {
    std::vector<std::thread> threads;
    auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    for (int i = 0; i < n; i++)
        threads.emplace_back([=] {
            grpc::ChannelArguments own;
            own.SetInt("own connection", i / 50); // a connection for each fifty
            client(
                i % 2 ? channel
                      : grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own),
                i);
        });
    std::fprintf(stderr, "client: %d kernel threads\n", kernel_threads());
    for (auto &t : threads) t.join();
    std::printf("%d clients, right\n", n);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && std::string(argv[1]) == "serve") return serve(argv[2]);
    if (argc == 4 && std::string(argv[1]) == "ask") return ask(argv[2], std::atoi(argv[3]));
    return 2;
}
