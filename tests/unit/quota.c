/* The CPU quota of a cgroup, from a made-up /sys/fs/cgroup: version 2, and 1, whose controllers
 * share mounts in many ways. */
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

/* The quota of a process with this line in /proc/self/cgroup. */
static int with_groups(const char *line) {
    char text[128];
    snprintf(text, sizeof text, "12:memory:/x\n%s\n1:name=systemd:/x\n", line);
    return os_groups_quota(text);
}

static void version_1(void) {
    put("/cpu", "cpu.cfs_quota_us", "-1\n");
    put("/cpu", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ(with_groups("3:cpu:/"), 0);
    put("/cpu", "cpu.cfs_quota_us", "250000\n");
    CHECK_EQ(with_groups("3:cpu:/"), 3);
    CHECK_EQ(with_groups("3:cpu,cpuacct:/"), 3);
    CHECK_EQ(with_groups("3:cpuacct,cpu:/a"), 3);
    CHECK_EQ(with_groups("3:cpuset,cpu,cpuacct:/a"), 3);
    CHECK_EQ(with_groups("3:cpuacct:/"), 0);
    CHECK_EQ(with_groups("3:cpuset:/"), 0);
    CHECK_EQ(with_groups("3:cpuset,cpuacct:/"), 0);
    CHECK_EQ(with_groups("3:name=cpu:/"), 0);
    put("/cpu/a", "cpu.cfs_quota_us", "150000\n");
    put("/cpu/a", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ(with_groups("3:cpu:/a"), 2); /* the least of the group and those above it */
    CHECK_EQ(with_groups("3:cpu:/"), 3);
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
    version_1();
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    CHECK_EQ(system(command), 0);
    os_cgroup_root(NULL);
    CHECK_GE(os_cpu_quota(), 0);
    return 0;
}
