/*
 * Free space by fstatvfs, at most once a batch. Sizes follow the file system's, so that a small one
 * works too. Trusts nothing; never deletes anything but its own ballast file.
 */
#include "store/floor.h"
#include "lib/die.h"
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char ballast_name[] = "ballast";

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

static void ballast_make(struct floor *f)
{
	int fd = openat(f->dir, ballast_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	f->have_ballast = posix_fallocate(fd, 0, (off_t)f->ballast) == 0;
	close(fd);
	if (!f->have_ballast)
		(void)unlinkat(f->dir, ballast_name, 0);
}

void floor_open(struct floor *f, int dir)
{
	uint64_t available = 0, total = 0;
	*f = (struct floor){.dir = dir};
	if (!measure(f, &available, &total))
		fatal("cannot measure the free space of the store: %m");
	f->ballast = clamp(total / 16, 1 << 20, 8 << 20);
	f->least = clamp(total / 8, 3 << 20, 64 << 20);
	if (available > f->least + f->ballast || faccessat(dir, ballast_name, F_OK, 0) == 0)
		ballast_make(f);
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
	if (f->roomy && !f->have_ballast && available >= f->least + 2 * f->ballast)
		ballast_make(f);
	if (!f->roomy && !f->said)
		log_warn("less than %llu MB free: new work is refused until there is room",
			 (unsigned long long)(f->least >> 20));
	if (f->roomy && f->said)
		log_info("there is room again: new work is taken");
	f->said = !f->roomy;
	return f->roomy;
}

bool floor_drop(struct floor *f)
{
	f->measured = true;
	f->roomy = false;
	/* At start the file may be there before floor_open looked. */
	bool had = unlinkat(f->dir, ballast_name, 0) == 0;
	f->have_ballast = false;
	if (had)
		log_warn("the disk is full: the ballast file was given up so that runs can still end");
	return had;
}
