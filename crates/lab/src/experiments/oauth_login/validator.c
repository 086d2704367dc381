/*
 * An OAuth validator module for PostgreSQL 18 that asks a service on this machine: it sends role and token to the Unix
 * socket SOCKET_PATH and reads one line, "+NAME" or "-REASON". For experiments, not for production.
 *
 * It is compiled without the server's headers, so what it needs of them is declared here as 18 defines it:
 * src/include/fmgr.h (Pg_magic_struct), src/include/libpq/oauth.h, src/include/utils/elog.h, src/include/utils/palloc.h.
 * A server of another major refuses the module by its magic block.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SERVER_LOG 15
#define PATIENCE_S 20
#define ANSWER_BYTES 1024

struct magic {
    int len;
    struct {
        int version, funcmaxargs, indexmaxkeys, namedatalen, float8byval;
        char abi_extra[32];
    } abi;
    const char *name, *version;
};

struct state {
    int sversion;
    void *private_data;
};

struct result {
    bool authorized;
    char *authn_id;
};

struct callbacks {
    uint32_t magic;
    void (*startup)(struct state *);
    void (*shutdown)(struct state *);
    bool (*validate)(const struct state *, const char *token, const char *role, struct result *);
};

extern char *pstrdup(const char *text);
extern bool errstart(int level, const char *domain);
extern int errmsg(const char *format, ...);
extern void errfinish(const char *file, int line, const char *function);

static void say(const char *what)
{
    if (errstart(SERVER_LOG, NULL)) {
        errmsg("pgclinic validator: %s", what);
        errfinish(__FILE__, __LINE__, __func__);
    }
}

static bool send_all(int fd, const char *bytes, size_t left)
{
    while (left > 0) {
        ssize_t sent = send(fd, bytes, left, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        left -= (size_t) sent;
    }
    return true;
}

/* One line without its end; false when the service hung up or was too slow. */
static bool read_line(int fd, char *line)
{
    size_t used = 0;
    while (used < ANSWER_BYTES - 1) {
        ssize_t got = recv(fd, line + used, ANSWER_BYTES - 1 - used, 0);
        if (got <= 0)
            return false;
        used += (size_t) got;
        line[used] = '\0';
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = '\0';
            return true;
        }
    }
    return false;
}

static bool ask(const char *token, const char *role, char *answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered;

    if (fd < 0)
        return false;
    strncpy(address.sun_path, SOCKET_PATH, sizeof(address.sun_path) - 1);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    answered = connect(fd, (struct sockaddr *) &address, sizeof(address)) == 0
        && send_all(fd, role, strlen(role)) && send_all(fd, "\n", 1)
        && send_all(fd, token, strlen(token)) && send_all(fd, "\n", 1)
        && read_line(fd, answer);
    close(fd);
    return answered;
}

static bool validate(const struct state *state, const char *token, const char *role, struct result *result)
{
    char answer[ANSWER_BYTES] = "";

    (void) state;
    result->authorized = false;
    if (!ask(token, role, answer)) {
        say("the service that checks tokens does not answer");
        return false;
    }
    if (answer[0] != '+') {
        say(answer[0] != '\0' ? answer + 1 : "an empty answer");
        return true;
    }
    result->authorized = true;
    result->authn_id = pstrdup(answer + 1);
    return true;
}

static const struct callbacks callbacks = {.magic = 0x20250220, .validate = validate};

const struct callbacks *_PG_oauth_validator_module_init(void)
{
    return &callbacks;
}

const struct magic *Pg_magic_func(void)
{
    static const struct magic magic = {
        .len = sizeof(struct magic),
        .abi = {1800, 100, 32, 64, 1, "PostgreSQL"},
    };
    return &magic;
}
