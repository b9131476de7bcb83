/*
 * A pipeline in C++: lines -> words -> the longest ones. Strings are moved from stage to stage, the
 * workers of the middle stage are a group, and a context with a timeout bounds the whole.
 */
#include <gort.hpp>
#include <iostream>
#include <sstream>
#include <vector>

using namespace std::chrono_literals;
using lines = gort::chan<std::string>;
using words = gort::chan<std::vector<std::string>>;

static const char *const text[] = {
    "Do not communicate by sharing memory",
    "instead share memory by communicating",
    "Channels orchestrate",
    "mutexes serialize",
    "The bigger the interface",
    "the weaker the abstraction",
};

/* Sends each line unless the context is done first. */
static void read_all(const lines &out, gort::context_ref ctx) {
    for (const char *line : text) {
        bool stop = false;
        gort::select(gort::on_send(out, line), gort::on_done(ctx, [&] { stop = true; }));
        if (stop) break;
    }
    out.close();
}

/* Any number of these share the work; each line goes to one of them. */
static void split(const lines &in, const words &out) {
    for (std::string &line : in) {
        std::vector<std::string> found;
        std::istringstream stream(line);
        for (std::string word; stream >> word;) found.push_back(std::move(word));
        out.send(std::move(found)); /* the vector is moved, not copied */
    }
}

static int app() {
    gort::context root;
    gort::context ctx = root.with_timeout(30s);
    lines to_split;
    words to_count(4);
    gort::group workers(ctx);

    gort::go_with({"reader"}, [=, ref = gort::context_ref(ctx)] { read_all(to_split, ref); });
    for (int i = 0; i < 3; i++) workers.go([=] { split(to_split, to_count); });
    gort::go([&workers, to_count] {
        if (gort::error e = workers.wait()) std::cerr << "split: " << e.message() << "\n";
        to_count.close(); /* ends the loop below */
    });

    std::size_t count = 0;
    std::string longest;
    for (const auto &line : to_count)
        for (const std::string &word : line) {
            count++;
            if (word.size() > longest.size()) longest = word;
        }
    std::cout << count << " words, the longest is \"" << longest << "\"\n";

    gort::chan<int> quiet;
    gort::select(gort::on_recv(quiet, [](std::optional<int>) { std::cout << "?\n"; }),
                 gort::within(5ms, [] { std::cout << "nothing more for 5 ms\n"; }));
    return ctx.err() ? 1 : 0;
}

int main() { return gort::main(app); }
