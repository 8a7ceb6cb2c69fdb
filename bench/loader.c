/* A closed loop of tools/call that checks every reply and prints its figures as one line of JSON.
 *   loader http URL [options]            N connections, each with a session of its own when legacy
 *   loader stdio [options] -- COMMAND    one child, N calls in flight
 * options: --era legacy|modern  --width N  --seconds S  --warm S  --tool NAME  --arguments JSON
 *          --at-least BYTES (of each reply)  --expects TEXT (in each reply) */
#include "loader.h"

options opt = {.width = 1, .seconds = 1, .warm_seconds = 0.25, .tool = "echo", .arguments = "{\"message\":\"hello\"}"};

const char *INITIALIZE =
  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"" LEGACY "\",\"capabilities\":{},"
  "\"clientInfo\":{\"name\":\"bench-loader\",\"version\":\"1\"}}}";
const char *INITIALIZED = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
static const char *MODERN_META =
  ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" MODERN "\",\"io.modelcontextprotocol/clientInfo\":"
  "{\"name\":\"bench-loader\",\"version\":\"1\"},\"io.modelcontextprotocol/clientCapabilities\":{}}";

static uint64_t counting_from, ends_at, bytes_counted, faults;
static uint32_t *latencies, last_id = 1000;
static size_t calls, latency_room;
static char first_fault[400];

void keep(reply *r, const char *bytes, size_t size) {
  if (r->size < EDGE) {
    size_t part = EDGE - r->size < size ? EDGE - r->size : size;
    memcpy(r->first + r->size, bytes, part);
    r->first[r->size + part] = 0;
  }
  r->size += size;
  if (r->size <= EDGE) return;
  if (size > EDGE) {
    bytes += size - EDGE;
    size = EDGE;
  }
  if (r->last_size + size > sizeof r->last) {
    size_t stays = r->last_size < EDGE ? r->last_size : EDGE;
    memmove(r->last, r->last + r->last_size - stays, stays);
    r->last_size = stays;
  }
  memcpy(r->last + r->last_size, bytes, size);
  r->last_size += size;
}

static const char *message_fault(slice message, uint32_t id) {
  char wanted[16];
  snprintf(wanted, sizeof wanted, "%u", id);
  slice result = member(message, "result");
  if (!same(member(message, "id"), wanted)) return "another id";
  if (!result.at) return "no result";
  if (same(member(result, "isError"), "true")) return "isError";
  if (opt.expects && !memmem(result.at, result.size, opt.expects, strlen(opt.expects))) return "another payload";
  return NULL;
}

/* A whole reply: JSON, or events of which one must be the answer. */
static const char *whole_fault(const reply *r, uint32_t id) {
  if (r->size && *past_blanks(r->first, r->first + r->size) == '{') return message_fault((slice){r->first, r->size}, id);
  const char *reason = "no answer", *limit = r->first + r->size;
  for (const char *line = r->first; line && line < limit;) {
    const char *end = memchr(line, '\n', (size_t)(limit - line));
    if (!strncmp(line, "data:", 5)) {
      slice message = {line + 5, (size_t)((end ? end : limit) - line) - 5};
      if (!(reason = message_fault(message, id))) return NULL;
    }
    line = end ? end + 1 : NULL;
  }
  return reason;
}

static bool at_edges(const reply *r, const char *text) {
  return memmem(r->first, EDGE, text, strlen(text)) || memmem(r->last, r->last_size, text, strlen(text));
}

const char *fault(const reply *r, uint32_t id) {
  char wanted[32];
  if (r->size < opt.at_least) return "too short";
  if (r->size <= EDGE) return whole_fault(r, id);
  snprintf(wanted, sizeof wanted, "\"id\":%u", id);
  if (!at_edges(r, wanted)) return "another id";
  if (!at_edges(r, "\"result\":")) return "no result";
  if (at_edges(r, "\"isError\":true")) return "isError";
  const char *end = r->last + r->last_size;
  while (end > r->last && (end[-1] == '\n' || end[-1] == '\r')) end--;
  return end > r->last && end[-1] == '}' ? NULL : "cut short";
}

void count_fault(const char *reason, const reply *r) {
  if (!faults++) {
    size_t size = (size_t)snprintf(first_fault, sizeof first_fault, "%s: %.240s", reason, r ? r->first : "");
    for (size_t i = 0; i < size; i++)
      if (first_fault[i] < ' ' || first_fault[i] > '~' || first_fault[i] == '"' || first_fault[i] == '\\') first_fault[i] = '\'';
  }
}

void count_call(uint64_t began, uint64_t ended, size_t bytes) {
  if (began < counting_from) return;
  if (calls == latency_room) latencies = realloc(latencies, (latency_room = latency_room ? 2 * latency_room : 1 << 16) * sizeof *latencies);
  uint64_t taken = ended - began;
  latencies[calls++] = taken > UINT32_MAX ? UINT32_MAX : (uint32_t)taken;
  bytes_counted += bytes;
}

void start_clock(void) {
  counting_from = nanoseconds() + (uint64_t)(opt.warm_seconds * 1e9);
  ends_at = counting_from + (uint64_t)(opt.seconds * 1e9);
}

bool time_left(uint64_t now) { return now < ends_at; }

uint32_t next_id(void) { return ++last_id; }

int call_text(char *out, size_t room, uint32_t id) {
  return snprintf(out, room, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\",\"arguments\":%s%s}}",
                  id, opt.tool, opt.arguments, opt.modern ? MODERN_META : "");
}

int list_text(char *out, size_t room, uint32_t id) {
  return snprintf(out, room, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/list\",\"params\":{%s}}", id,
                  opt.modern ? MODERN_META + 1 : "");
}

bool lists_tool(const reply *r) {
  char wanted[200];
  snprintf(wanted, sizeof wanted, "\"name\":\"%s\"", opt.tool);
  return at_edges(r, wanted);
}

static int by_size(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static double quantile_us(double share) { return calls ? latencies[(size_t)((double)(calls - 1) * share)] / 1e3 : 0; }

static void print_figures(void) {
  double seconds = (double)(nanoseconds() - counting_from) / 1e9;
  qsort(latencies, calls, sizeof *latencies, by_size);
  printf("{\"calls\":%zu,\"rps\":%.2f,\"p50_us\":%.2f,\"p90_us\":%.2f,\"p99_us\":%.2f,\"mb_s\":%.3f,\"errors\":%llu,\"error\":\"%s\"}\n",
         calls, (double)calls / seconds, quantile_us(.5), quantile_us(.9), quantile_us(.99), (double)bytes_counted / seconds / 1e6,
         (unsigned long long)faults, first_fault);
}

static char **read_options(int argc, char **argv, int from) {
  for (int i = from; i < argc; i += 2) {
    if (!strcmp(argv[i], "--")) return argv + i + 1;
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--era")) opt.modern = !strcmp(value, "modern");
    else if (!strcmp(argv[i], "--width")) opt.width = atoi(value);
    else if (!strcmp(argv[i], "--seconds")) opt.seconds = atof(value);
    else if (!strcmp(argv[i], "--warm")) opt.warm_seconds = atof(value);
    else if (!strcmp(argv[i], "--tool")) opt.tool = value;
    else if (!strcmp(argv[i], "--arguments")) opt.arguments = value;
    else if (!strcmp(argv[i], "--at-least")) opt.at_least = strtoul(value, NULL, 10);
    else if (!strcmp(argv[i], "--expects")) opt.expects = value;
    else {
      fprintf(stderr, "loader: unknown option %s\n", argv[i]);
      exit(2);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  bool stdio = argc > 2 && !strcmp(argv[1], "stdio");
  if (argc < 3 || (!stdio && strcmp(argv[1], "http"))) {
    fprintf(stderr, "loader http URL [options] | loader stdio [options] -- COMMAND\n");
    return 2;
  }
  char **command = read_options(argc, argv, stdio ? 2 : 3);
  signal(SIGPIPE, SIG_IGN);
  if (stdio && command) run_stdio(command);
  else if (!stdio) run_http(argv[2]);
  print_figures();
  return 0;
}
