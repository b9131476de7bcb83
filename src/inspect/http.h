/* As much of HTTP/1.1 as the live page needs: GET, one request to a connection. See http.c. */
#ifndef HTTP_H
#define HTTP_H

#include "base/print.h"

#define HTTP_HEAD 8192 /* a request larger than this is refused */

typedef struct HttpRequest {
    bool head;        /* HEAD: no body in the answer */
    bool wants_json;  /* Accept: application/json */
    char path[256];   /* decoded, begins with '/' */
    char query[1024]; /* raw, after the '?' */
    char host[256];   /* Host, or the authority of an absolute target; lower case, with the port */
    char authority[256];
    char origin[256]; /* Origin, lower case */
    char site[16];    /* Sec-Fetch-Site, lower case */
    char token[128];  /* Authorization: Bearer ... */
} HttpRequest;

/* Parses the head of a request. 0: incomplete, 200: done, else the status to refuse it with. */
int http_parse(const char *buf, size_t n, HttpRequest *r);

/* Decodes a query parameter into buf; false: not there, or broken. */
bool http_has(const HttpRequest *r, const char *name);
bool http_param(const HttpRequest *r, const char *name, char *buf, size_t size);
#define HTTP_NO_NUMBER UINT64_MAX /* the parameter is there, and is none */
uint64_t http_number(const HttpRequest *r, const char *name, uint64_t otherwise);

/* A whole answer, or the head of one that ends with the connection. conn: page.c. 0, -errno. */
int http_answer(int conn, const HttpRequest *r, int status, const char *type, const char *body,
                size_t n);
int http_begin(int conn, int status, const char *type, const char *more);
int http_send(int conn, const void *bytes, size_t n); /* gives up after ten seconds in
                                                          which nothing could be sent */

#endif
