/*
 * A planted bug: two accounts, and a transfer locks the one it takes from first. Two transfers in
 * opposite directions can each hold one lock and wait for the other. -DRIGHT: in one order.
 */
#include <pthread.h>
#include <stdio.h>

typedef struct Account {
    pthread_mutex_t mutex;
    long money;
} Account;

static Account a = {PTHREAD_MUTEX_INITIALIZER, 100}, b = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(Account *from, Account *to, long n) {
#ifdef RIGHT
    Account *first = from < to ? from : to, *second = from < to ? to : from;
#else
    Account *first = from, *second = to; /* wrong: must be taken in one order, say by address */
#endif
    pthread_mutex_lock(&first->mutex);
    pthread_mutex_lock(&second->mutex);
    from->money -= n;
    to->money += n;
    pthread_mutex_unlock(&second->mutex);
    pthread_mutex_unlock(&first->mutex);
}

static void *there(void *arg) {
    transfer(&a, &b, 10);
    return arg;
}
static void *back(void *arg) {
    transfer(&b, &a, 5);
    return arg;
}

int main(void) {
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, there, NULL) != 0) return 2;
    if (pthread_create(&threads[1], NULL, back, NULL) != 0) return 2;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%ld and %ld\n", a.money, b.money);
    return a.money + b.money == 200 ? 0 : 1;
}
