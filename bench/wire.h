/* Shared by upstream.c and loader.c: slices of JSON text, a reader of object members, and the clock.
 * The reader walks over well-formed JSON without allocating; on malformed text it ends at the limit and finds nothing. */
#ifndef WIRE_H
#define WIRE_H
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEGACY "2025-11-25"
#define MODERN "2026-07-28"

typedef struct { const char *at; size_t size; } slice;

static inline bool same(slice text, const char *other) {
  return text.at && text.size == strlen(other) && memcmp(text.at, other, text.size) == 0;
}

static inline const char *past_blanks(const char *at, const char *limit) {
  while (at < limit && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

/* `at` stands on the opening quote. */
static inline const char *past_string(const char *at, const char *limit) {
  for (at++; at < limit; at++) {
    if (*at == '\\') at++;
    else if (*at == '"') return at + 1;
  }
  return limit;
}

static inline const char *past_value(const char *at, const char *limit) {
  if (at < limit && *at == '"') return past_string(at, limit);
  int depth = 0;
  while (at < limit) {
    switch (*at) {
      case '"': at = past_string(at, limit); continue;
      case '{': case '[': depth++; break;
      case '}': case ']':
        if (depth == 0) return at;
        if (--depth == 0) return at + 1;
        break;
      case ',': case ' ': case '\t': case '\r': case '\n':
        if (depth == 0) return at;
    }
    at++;
  }
  return limit;
}

/* The raw text of a member of an object, or a slice at NULL. */
static inline slice member(slice object, const char *name) {
  const char *at = object.at, *limit = object.at ? object.at + object.size : NULL;
  if (!at) return (slice){NULL, 0};
  at = past_blanks(at, limit);
  if (at == limit || *at++ != '{') return (slice){NULL, 0};
  while ((at = past_blanks(at, limit)) < limit && *at == '"') {
    slice key = {at + 1, 0};
    at = past_string(at, limit);
    key.size = (size_t)(at - key.at) - 1;
    at = past_blanks(at, limit);
    if (at == limit || *at != ':') break;
    at = past_blanks(at + 1, limit);
    slice value = {at, 0};
    at = past_value(at, limit);
    value.size = (size_t)(at - value.at);
    if (same(key, name)) return value;
    at = past_blanks(at, limit);
    if (at == limit || *at++ != ',') break;
  }
  return (slice){NULL, 0};
}

/* The value of an HTTP header in a head that ends with an empty line; `name` is given with its colon. */
static inline slice header(slice head, const char *name) {
  const char *limit = head.at + head.size;
  size_t length = strlen(name);
  for (const char *line = memchr(head.at, '\n', head.size); line; line = memchr(line, '\n', (size_t)(limit - line))) {
    line++;
    if ((size_t)(limit - line) < length || strncasecmp(line, name, length)) continue;
    line = past_blanks(line + length, limit);
    const char *end = memchr(line, '\r', (size_t)(limit - line));
    return (slice){line, (size_t)((end ? end : limit) - line)};
  }
  return (slice){NULL, 0};
}

static inline uint64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void never_block(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static inline void no_delay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

#endif
