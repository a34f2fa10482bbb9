/* See talk.h. */
#include "attack/talk.h"
#include "attack/tried.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENCE_MS = 1000, PATIENCE_MS = 30000 };

int talk_port(void)
{
	const char *url = getenv("PINFOLD_MODEL_GATEWAY_URL");
	const char *at = url != NULL ? strstr(url, "//") : NULL;
	const char *colon = at != NULL ? strchr(at, ':') : NULL;
	return colon != NULL ? atoi(colon + 1) : 9797;
}

long talk_raw(const char *request, size_t n, char *to, size_t size)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((unsigned short)talk_port()),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	long got = -1;
	if (s >= 0 && connect(s, (struct sockaddr *)&a, sizeof a) == 0) {
		got = 0;
		for (size_t sent = 0; sent < n;) {
			ssize_t k = send(s, request + sent, n - sent, MSG_NOSIGNAL);
			if (k <= 0)
				break; /* it may have answered already */
			sent += (size_t)k;
		}
		struct pollfd p = {.fd = s, .events = POLLIN};
		while ((size_t)got + 1 < size && poll(&p, 1, got > 0 ? SILENCE_MS : PATIENCE_MS) > 0) {
			ssize_t k = recv(s, to + got, size - 1 - (size_t)got, 0);
			if (k <= 0)
				break;
			got += k;
		}
	}
	to[got > 0 ? got : 0] = '\0';
	if (s >= 0)
		close(s);
	return got;
}

int talk_status(const char *answer, long n)
{
	return n > 12 && strncmp(answer, "HTTP/1.", 7) == 0 ? atoi(answer + 9) : -1;
}

int talk(const char *method, const char *path, const char *token, const char *body, char *to, size_t size)
{
	static char own[TALK_MAX], request[TALK_MAX];
	if (to == NULL) {
		to = own;
		size = sizeof own;
	}
	int n = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", method,
			 path);
	if (token != NULL)
		n += snprintf(request + n, sizeof request - (size_t)n, "Authorization: Bearer %s\r\n", token);
	if (body != NULL)
		n += snprintf(request + n, sizeof request - (size_t)n,
			      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
	else
		n += snprintf(request + n, sizeof request - (size_t)n, "\r\n");
	return (size_t)n < sizeof request ? talk_status(to, talk_raw(request, (size_t)n, to, size)) : -1;
}

bool talk_token(const char *file, char to[TOKEN_MAX])
{
	char path[100];
	snprintf(path, sizeof path, "/workspace/%s", file);
	return read_text(path, to, TOKEN_MAX) > 0;
}

int talk_event(const char *type, const char *run, const char *sequence, const char *data)
{
	static char line[TALK_MAX / 2], escaped[TALK_MAX / 2], body[TALK_MAX];
	char token[TOKEN_MAX], path[200];
	const char *own = getenv("PINFOLD_RUN_ID");
	size_t k = 0;
	bool given = talk_token(".pinfold-event-token", token);
	if (own == NULL)
		return -1;
	snprintf(line, sizeof line,
		 "{\"event_type\":\"%s\",\"run_id\":\"%s\",\"task_id\":\"%s\",\"sequence\":%s,\"data\":%s}", type, run,
		 run, sequence, data);
	for (const char *c = line; *c != '\0' && k + 3 < sizeof escaped; c++) {
		if (*c == '"' || *c == '\\')
			escaped[k++] = '\\';
		escaped[k++] = *c;
	}
	escaped[k] = '\0';
	snprintf(body, sizeof body, "{\"lines\":[\"%s\\n\"]}", escaped);
	snprintf(path, sizeof path, "/internal/v1/runs/%s/events", own);
	return talk("POST", path, given ? token : NULL, body, NULL, 0);
}
