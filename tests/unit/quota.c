/* The CPU quota of a cgroup, from a made-up /sys/fs/cgroup: version 2, and 1 where this machine has
 * the controller. */
#include "../lib/test.h"
#include "os/os.h"
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void put(const char *dir, const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s%s/%s", root, dir, file);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

static bool has_version_1(void) {
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f))
        found |= strstr(line, ":cpu,") || strstr(line, ":cpu:") || strstr(line, ",cpu:");
    if (f) fclose(f);
    return found;
}

int main(void) {
    snprintf(root, sizeof root, "%s/gort-quota-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(root) != NULL);
    os_cgroup_root(root);
    CHECK_EQ(os_cpu_quota(), 0); /* nothing there: no limit */
    put("", "cpu.max", "max 100000\n");
    CHECK_EQ(os_cpu_quota(), 0);
    put("", "cpu.max", "150000 100000\n");
    CHECK_EQ(os_cpu_quota(), 2); /* rounded up */
    put("", "cpu.max", "50000 100000\n");
    CHECK_EQ(os_cpu_quota(), 1);
    put("", "cpu.max", "800000 100000\n");
    CHECK_EQ(os_cpu_quota(), 8);
    put("", "cpu.max", "rubbish\n");
    CHECK_EQ(os_cpu_quota(), 0);
    if (has_version_1()) {
        put("/cpu", "cpu.cfs_quota_us", "-1\n");
        put("/cpu", "cpu.cfs_period_us", "100000\n");
        CHECK_EQ(os_cpu_quota(), 0);
        put("/cpu", "cpu.cfs_quota_us", "250000\n");
        CHECK_EQ(os_cpu_quota(), 3);
    }
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    CHECK_EQ(system(command), 0);
    os_cgroup_root(NULL);
    CHECK_GE(os_cpu_quota(), 0);
    return 0;
}
