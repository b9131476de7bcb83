/* librdkafka with the broker that it plays itself: hundreds produce with one client, and ask for
 * the ends of the log. */
#include "crowd.h"
#include <librdkafka/rdkafka.h>

static rd_kafka_t *client;
static int delivered;

static void report(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg) {
    CHECK(m->err == RD_KAFKA_RESP_ERR_NO_ERROR);
    __atomic_store_n((int *)m->_private, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&delivered, 1, __ATOMIC_SEQ_CST);
}

static void produce(int i) {
    char text[32];
    int done = 0;
    int64_t low = -1, high = -1;
    int n = snprintf(text, sizeof text, "number %d", i);
    rd_kafka_resp_err_t r = rd_kafka_producev(
        client, RD_KAFKA_V_TOPIC("crowd"), RD_KAFKA_V_PARTITION(i % 4),
        RD_KAFKA_V_VALUE(text, (size_t)n), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_OPAQUE(&done), RD_KAFKA_V_END);
    CHECK(r == RD_KAFKA_RESP_ERR_NO_ERROR);
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) rd_kafka_poll(client, 5);
    CHECK(rd_kafka_query_watermark_offsets(client, "crowd", i % 4, &low, &high, 60000) ==
          RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(low == 0 && high >= 1);
}

static int run(int argc, char **argv) {
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    CHECK(rd_kafka_conf_set(conf, "test.mock.num.brokers", "3", why, sizeof why) ==
          RD_KAFKA_CONF_OK);
    rd_kafka_conf_set_dr_msg_cb(conf, report);
    client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    CHECK(client != NULL);
    const struct rd_kafka_metadata *m;
    CHECK(rd_kafka_metadata(client, 1, NULL, &m, 60000) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_metadata_destroy(m);
    crowd("librdkafka", produce);
    CHECK(delivered == crowd_size());
    rd_kafka_destroy(client);
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
