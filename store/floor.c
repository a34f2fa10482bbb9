/*
 * Free space by fstatvfs, at most once a batch. Sizes follow the file system's, so that a small one
 * works too. Trusts nothing; never deletes anything but its own ballast files.
 */
#include "store/floor.h"
#include "lib/die.h"
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A log that begins takes the whole size of its file, 2 MB, at once; and what it is about has to be written, too. */
enum { MB = 1 << 20, LEAST_BALLAST = 3 * MB };

static const char *const names[BALLAST__COUNT] = {"ballast", "ballast.start"};

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
	return v < low ? low : v > high ? high : v;
}

static bool measure(const struct floor *f, uint64_t *available, uint64_t *total)
{
	struct statvfs v;
	if (fstatvfs(f->dir, &v) != 0)
		return false;
	*available = (uint64_t)v.f_bavail * v.f_frsize;
	*total = (uint64_t)v.f_blocks * v.f_frsize;
	return true;
}

static void make(struct floor *f, int which)
{
	if (f->have[which])
		return;
	int fd = openat(f->dir, names[which], O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	f->have[which] = posix_fallocate(fd, 0, (off_t)f->ballast[which]) == 0;
	close(fd);
	if (!f->have[which])
		(void)unlinkat(f->dir, names[which], 0);
}

static bool drop(struct floor *f, int which)
{
	f->have[which] = false;
	return unlinkat(f->dir, names[which], 0) == 0;
}

void floor_start(struct floor *f, int dir)
{
	uint64_t available = 0, total = 0;
	*f = (struct floor){.dir = dir};
	if (!measure(f, &available, &total))
		fatal("cannot measure the free space of the store: %m");
	f->ballast[BALLAST_WORK] = clamp(total / 16, LEAST_BALLAST, 8 * MB);
	f->ballast[BALLAST_START] = clamp(total / 16, LEAST_BALLAST, 4 * MB);
	/* More than the ballast gives back, which would else be taken for room. */
	f->least = clamp(total / 8, f->ballast[BALLAST_WORK] + MB, 64 * MB);
	for (int i = 0; i < BALLAST__COUNT; i++)
		f->have[i] = faccessat(dir, names[i], F_OK, 0) == 0;
	if (available < f->ballast[BALLAST_START] && drop(f, BALLAST_START))
		log_warn("the disk is full: the ballast for starting was given up");
}

void floor_open(struct floor *f)
{
	(void)floor_roomy(f);
}

void floor_turn(struct floor *f)
{
	f->measured = false;
}

bool floor_roomy(struct floor *f)
{
	uint64_t available, total;
	if (f->measured)
		return f->roomy;
	f->measured = true;
	f->roomy = measure(f, &available, &total) && available >= f->least;
	/* Only where making them does not bring us below the floor at once. */
	uint64_t room = f->least;
	for (int i = 0; f->roomy && i < BALLAST__COUNT; i++) {
		room += f->have[i] ? 0 : f->ballast[i];
		if (!f->have[i] && available >= room)
			make(f, i);
	}
	if (!f->roomy && !f->said)
		log_warn("less than %llu MB free: new work is refused until there is room",
			 (unsigned long long)(f->least / MB));
	if (f->roomy && f->said)
		log_info("there is room again: new work is taken");
	f->said = !f->roomy;
	return f->roomy;
}

uint64_t floor_free(const struct floor *f)
{
	uint64_t available, total;
	return measure(f, &available, &total) ? available : 0;
}

void floor_drop(struct floor *f)
{
	f->measured = true;
	f->roomy = false;
	if (!drop(f, BALLAST_WORK))
		return;
	f->dropped = true;
	log_warn("the disk is full: the ballast was given up so that runs can still end");
}
