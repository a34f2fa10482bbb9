/*
 * trivial_fcgi SOCKET: the least that a FastCGI responder on libfcgi can do, as the measure for ours. Reads the
 * body to its end, answers 16 bytes. For benchmarks only.
 */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { THREADS = 32 };

static void *serve(void *arg)
{
	FCGX_Request r;
	char waste[16384];
	FCGX_InitRequest(&r, *(int *)arg, 0);
	while (FCGX_Accept_r(&r) == 0) {
		while (FCGX_GetStr(waste, sizeof waste, r.in) > 0)
			continue;
		FCGX_PutS("Content-Type: application/json\r\n\r\n{\"answer\":\"yes\"}", r.out);
		FCGX_Finish_r(&r);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	if (argc != 2) {
		fputs("usage: trivial_fcgi SOCKET\n", stderr);
		return 2;
	}
	FCGX_Init();
	int fd = FCGX_OpenSocket(argv[1], 1024);
	if (fd < 0 || chmod(argv[1], 0666) != 0) {
		perror(argv[1]);
		return 1;
	}
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&t, NULL, serve, &fd) != 0)
			return 1;
	serve(&fd);
	return 0;
}
