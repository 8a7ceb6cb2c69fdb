/* What both halves of the loader share: options, the edges of a reply, its check, and the figures. */
#ifndef LOADER_H
#define LOADER_H
#include "wire.h"

#define EDGE 4096

/* The first and the last bytes of a reply: enough to check it, and cheap for one of many megabytes. */
typedef struct {
  char first[EDGE + 1], last[2 * EDGE];
  size_t size, last_size;
} reply;

typedef struct {
  bool modern;
  int width; /* connections over HTTP, calls in flight over stdio */
  double seconds, warm_seconds;
  size_t at_least; /* bytes that each reply must have */
  const char *tool, *arguments, *expects;
} options;

extern options opt;

void keep(reply *r, const char *bytes, size_t size);
/* NULL when the reply is the right answer to call `id`, else what is wrong. */
const char *fault(const reply *r, uint32_t id);
void count_fault(const char *reason, const reply *r);
void count_call(uint64_t began, uint64_t ended, size_t bytes);
/* True while calls are to be made; the first `warm_seconds` do not count. */
void start_clock(void);
bool time_left(uint64_t now);
uint32_t next_id(void);
int call_text(char *out, size_t room, uint32_t id);
int list_text(char *out, size_t room, uint32_t id);
bool lists_tool(const reply *r); /* true when a list of tools holds the one to be called */
extern const char *INITIALIZE, *INITIALIZED;

void run_http(const char *url);
void run_stdio(char **command);
#endif
