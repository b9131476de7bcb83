/*
 * A planted bug: two accounts, and a transfer locks the one it takes from first. Two transfers in
 * opposite directions can each hold one lock and wait for the other.
 */
#include <gort.h>
#include <stdio.h>

typedef struct Account {
    gort_mutex mutex;
    long money;
} Account;

static Account a = {.money = 100}, b = {.money = 100};

static void transfer(Account *from, Account *to, long n) {
    gort_mutex_lock(&from->mutex);
    gort_mutex_lock(&to->mutex); /* wrong: must be taken in one order, say by address */
    from->money -= n;
    to->money += n;
    gort_mutex_unlock(&to->mutex);
    gort_mutex_unlock(&from->mutex);
}

static void there(void *arg) { transfer(&a, &b, 10); }
static void back(void *arg) { transfer(&b, &a, 5); }

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    if (gort_wg_go(&wg, there, NULL) < 0) return 2;
    if (gort_wg_go(&wg, back, NULL) < 0) return 2;
    gort_wg_wait(&wg);
    printf("%ld and %ld\n", a.money, b.money);
    return a.money + b.money == 200 ? 0 : 1;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
