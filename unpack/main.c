/*
 * pinfold-unpack: makes a folder of files out of an uploaded archive. It runs inside a box, as the agent's uid, without
 * a network, a token or a key, and nowhere else: whoever finds a fault in the library that reads archives has found the
 * inside of a box in which there is nothing but that archive.
 *
 * pinfold-unpack ARCHIVE FOLDER FILES BYTES FILE_BYTES
 * The folder exists and is empty; the numbers are the most of files, of bytes of all files, and of one. Exit status 0:
 * done; 1: refused, and standard output has one line: the code of spec/errors.tab, and behind a space the name of the
 * entry at fault, if any, in printable ASCII; 2: wrong use. What it says is a claim, as everything out of a box: the
 * steward looks at the files again by the rules of other uploads (steward/source_tree.c).
 */
#include "lib/num.h"
#include "lib/own.h"
#include "unpack/unpack.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
/* The leak sanitizer traces its own process, which is not let in a box; it asks here before. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

int main(int argc, char **argv)
{
	struct unpack_limits most = {0};
	struct unpack_fault fault;
	uint64_t files = 0;
	if (argc != 6 || !num_u64(argv[3], strlen(argv[3]), 1, UINT32_MAX, &files) ||
	    !num_u64(argv[4], strlen(argv[4]), 1, UINT64_MAX / 2, &most.bytes) ||
	    !num_u64(argv[5], strlen(argv[5]), 1, UINT64_MAX / 2, &most.file_bytes)) {
		(void)fprintf(stderr, "usage: pinfold-unpack ARCHIVE FOLDER FILES BYTES FILE_BYTES\n");
		return 2;
	}
	most.files = (uint32_t)files;
	own_fd int archive = open(argv[1], O_RDONLY | O_CLOEXEC);
	own_fd int into = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (archive < 0 || into < 0) {
		perror(archive < 0 ? argv[1] : argv[2]);
		return 2;
	}
	unpack_archive(archive, into, &most, &fault);
	if (fault.code == ERR_OK)
		return 0;
	printf("%s%s%s\n", err_code(fault.code), *fault.name != 0 ? " " : "", fault.name);
	return 1;
}
