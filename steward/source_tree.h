/* What a box made of an archive becomes the upload of its run, if every file in it could have been one of files[]. */
#ifndef STEWARD_SOURCE_TREE_H
#define STEWARD_SOURCE_TREE_H
#include "steward/judge.h"

/*
 * A judge's work (judge_start): looks at the result of a box that unpacked, and writes to out either SOURCE and PROGRAM
 * frames and SOURCE_END, or one JUDGED that says what is wrong and where. upload is not looked at. ERR_OK in both
 * cases.
 */
enum err source_tree(int upload, int result, const struct judge_rules *rules, int out);
#endif
