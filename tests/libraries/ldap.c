/* libldap: hundreds of connections to one server, each asks for its root. Argument: the server's
 * address. */
#include "crowd.h"
#include <ldap.h>

static const char *server;

static void ask(int i) {
    LDAP *l;
    LDAPMessage *m = NULL;
    int three = LDAP_VERSION3;
    char *want[] = {"namingContexts", NULL};
    struct berval none = {0, NULL};
    CHECK(ldap_initialize(&l, server) == LDAP_SUCCESS);
    CHECK(ldap_set_option(l, LDAP_OPT_PROTOCOL_VERSION, &three) == LDAP_SUCCESS);
    int r = ldap_sasl_bind_s(l, "", LDAP_SASL_SIMPLE, &none, NULL, NULL, NULL);
    if (r != LDAP_SUCCESS) fprintf(stderr, "%s\n", ldap_err2string(r));
    CHECK(r == LDAP_SUCCESS);
    CHECK(ldap_search_ext_s(l, "", LDAP_SCOPE_BASE, "(objectClass=*)", want, 0, NULL, NULL, NULL, 0,
                            &m) == LDAP_SUCCESS);
    struct berval **v = ldap_get_values_len(l, ldap_first_entry(l, m), "namingContexts");
    CHECK(v != NULL && strcmp(v[0]->bv_val, "dc=crowd") == 0);
    ldap_value_free_len(v);
    ldap_msgfree(m);
    CHECK(ldap_search_ext_s(l, "dc=nobody", LDAP_SCOPE_BASE, NULL, NULL, 0, NULL, NULL, NULL, 0,
                            &m) == LDAP_NO_SUCH_OBJECT);
    ldap_msgfree(m);
    ldap_unbind_ext_s(l, NULL, NULL);
}

static int run(int argc, char **argv) {
    server = argv[1];
    crowd("libldap", ask);
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
