/* A thread that tells stored what is counted here, so that whoever asks stored itself is told of it, too. */
#ifndef FCGI_TELL_H
#define FCGI_TELL_H
#include <stdbool.h>

struct app;
/* Both are used later. False with errno. */
bool tell_start(const struct app *app, const char *store_path);
#endif
