/* What both clients of benches/scale have: the clock, paths by chance, heads of responses, and what is printed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void fail(const char *what)
{
    fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* In a pattern `@` is a number below a modulus by chance, in five digits or more, `#` its last three digits, and `^` an
 * address of 10.0.0.0/8, sixteen addresses for each number. By xorshift64*: the same order for each server. */
static uint64_t random_state = 88172645463325252ull;

static inline uint64_t random_below(uint64_t most)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 2685821657736338717ull >> 11) % most;
}

static inline void fill_in(char *out, size_t size, const char *pattern, uint64_t modulus)
{
    uint64_t n = modulus > 1 ? random_below(modulus) : 0;
    uint32_t address = 0x0a000000u + (uint32_t)(n << 4);
    size_t at = 0;
    for (; *pattern && at + 24 < size; pattern++) {
        if (*pattern == '@')
            at += sprintf(out + at, "%05llu", (unsigned long long)n);
        else if (*pattern == '#')
            at += sprintf(out + at, "%03u", (unsigned)(n % 1000));
        else if (*pattern == '^')
            at += sprintf(out + at, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
        else
            out[at++] = *pattern;
    }
    out[at] = 0;
}

static inline struct sockaddr_in loopback(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
}

/* A head of a response that has ended: its status, whether the connection ends, and the length of the body. */
struct head {
    int status, closes;
    long long length;
};

static inline struct head parse_head(char *text)
{
    struct head head = { .length = 0 };
    sscanf(text, "HTTP/1.%*d %d", &head.status);
    for (char *line = strstr(text, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (!strncasecmp(line + 2, "content-length:", 15))
            head.length = atoll(line + 17);
        if (!strncasecmp(line + 2, "connection: close", 17))
            head.closes = 1;
    }
    return head;
}

struct times {
    uint32_t *us;
    size_t count, room;
};

static inline void times_add(struct times *times, uint64_t ns)
{
    if (times->count == times->room) {
        times->room = times->room ? times->room * 2 : 4096;
        times->us = realloc(times->us, times->room * sizeof *times->us);
        if (!times->us)
            fail("memory");
    }
    times->us[times->count++] = ns / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 1000);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What a program found, printed as one line of JSON. */
static struct {
    uint64_t done, other, failed, again;
    struct times times;
} total;

static inline void total_print(double seconds)
{
    printf("{\"done\": %llu, \"other\": %llu, \"failed\": %llu, \"again\": %llu, \"seconds\": %.3f, ",
           (unsigned long long)total.done, (unsigned long long)total.other, (unsigned long long)total.failed,
           (unsigned long long)total.again, seconds);
    struct times *t = &total.times;
    qsort(t->us, t->count, sizeof *t->us, by_size);
    size_t n = t->count;
    printf("\"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u}\n", n ? t->us[n / 2] : 0, n ? t->us[n * 99 / 100] : 0,
           n ? t->us[n - 1] : 0);
    fflush(stdout);
}

static inline void wait_for_end_of_input(void)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}

/* Both programs end with the one that started them. */
static inline void begin(void)
{
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}
