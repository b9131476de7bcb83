// A plugin in C++, for tests/servers/plugin.c: libstdc++ comes with it, by RTLD_LOCAL.
#include <mutex>
#include <stdexcept>
#include <unistd.h>

static std::once_flag flag;
static int ran[100];

// Each routine throws, so each caller's has its turn, once.
extern "C" void plugin_once(long id) {
    try {
        std::call_once(flag, [id] {
            __atomic_add_fetch(&ran[id], 1, __ATOMIC_RELAXED);
            usleep(5000); // the others come, and wait
            throw std::runtime_error("again");
        });
    } catch (std::runtime_error &) {}
}
extern "C" int plugin_ran(long id) { return ran[id]; }

// How often a catch block that yields goes on with another exception.
extern "C" int plugin_wrong(int id, void (*yield)(void)) {
    int wrong = 0;
    for (int k = 0; k < 200; k++) {
        try {
            try {
                throw id * 1000 + k;
            } catch (int) {
                yield();
                throw;
            }
        } catch (int e) { wrong += e != id * 1000 + k; }
    }
    return wrong;
}
