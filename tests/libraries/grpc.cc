// gRPC's synchronous calls, whose waits are abseil's Mutex and CondVar; its server beside.
#include "crowd.h"
#include "echo.grpc.pb.h"

#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>

using grpc::ServerContext, grpc::ClientContext, grpc::Status, grpc::ServerReaderWriter;

class Service final : public echo::Echo::Service {
    Status One(ServerContext *, const echo::Asked *q, echo::Answer *a) override {
        usleep(1000);
        a->set_number(q->number() * 2);
        return Status::OK;
    }
    Status Talk(ServerContext *, ServerReaderWriter<echo::Answer, echo::Asked> *s) override {
        echo::Asked q;
        for (echo::Answer a; s->Read(&q); s->Write(a)) a.set_text(q.text() + "!");
        return Status::OK;
    }
};

static std::shared_ptr<grpc::Channel> channel;

static void ask(int i) {
    auto stub = echo::Echo::NewStub(channel);
    ClientContext one, talk;
    echo::Asked q;
    echo::Answer a;
    q.set_number(i);
    CHECK(stub->One(&one, q, &a).ok() && a.number() == i * 2);
    auto stream = stub->Talk(&talk);
    for (int k = 0; k < 3; k++) {
        q.set_text(std::to_string(i) + "," + std::to_string(k));
        CHECK(stream->Write(q) && stream->Read(&a) && a.text() == q.text() + "!");
    }
    stream->WritesDone();
    CHECK(!stream->Read(&a) && stream->Finish().ok());
}

static int run(int, char **) {
    Service service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    auto server = builder.BuildAndStart();
    CHECK(server && port);
    channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                  grpc::InsecureChannelCredentials());
    crowd_of_threads("gRPC", ask);
    crowd_of_threads("gRPC, again", ask);
    channel.reset();
    server->Shutdown();
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
