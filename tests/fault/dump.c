/*
 * dump FOLDER: recovers a copy of a store's folder, checks its trees, and writes every record of every table
 * as one line: table, key and value in hexadecimal. Knows Berkeley DB and nothing of Pinfold.
 * Exit status 1: the copy cannot be recovered, or a tree is broken.
 */
#include <db.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int ret, const char *what)
{
	if (ret == 0)
		return;
	fprintf(stderr, "dump: %s: %s\n", what, db_strerror(ret));
	exit(1);
}

static void put_hex(const DBT *d)
{
	const unsigned char *p = d->data;
	putchar(' ');
	for (u_int32_t i = 0; i < d->size; i++)
		printf("%02x", p[i]);
	if (d->size == 0)
		putchar('-');
}

/* Calls row for each record of the table (NULL: of the list of tables). */
static void each(DB_ENV *env, const char *table, void (*row)(DB_ENV *env, const char *table, DBT *k, DBT *v))
{
	DB *db;
	DBC *c;
	DBT k, v;
	int ret;
	must(db_create(&db, env, 0), "handle");
	must(db->open(db, NULL, "pinfold.db", table, DB_UNKNOWN, DB_RDONLY, 0), table == NULL ? "pinfold.db" : table);
	must(db->cursor(db, NULL, &c, 0), "cursor");
	memset(&k, 0, sizeof k);
	memset(&v, 0, sizeof v);
	while ((ret = c->get(c, &k, &v, DB_NEXT)) == 0)
		row(env, table, &k, &v);
	must(ret == DB_NOTFOUND ? 0 : ret, "reading");
	c->close(c);
	must(db->close(db, 0), "closing");
}

static void record(DB_ENV *env, const char *table, DBT *k, DBT *v)
{
	(void)env;
	fputs(table, stdout);
	put_hex(k);
	put_hex(v);
	putchar('\n');
}

static void one_table(DB_ENV *env, const char *none, DBT *k, DBT *v)
{
	char name[64];
	(void)none;
	(void)v;
	snprintf(name, sizeof name, "%.*s", (int)k->size, (const char *)k->data);
	each(env, name, record);
}

int main(int argc, char **argv)
{
	DB_ENV *env;
	DB *db;
	if (argc != 2) {
		fputs("usage: dump FOLDER\n", stderr);
		return 2;
	}
	must(db_env_create(&env, 0), "environment");
	env->set_errfile(env, stderr);
	env->set_tx_max(env, 64);
	must(
	    env->open(env, argv[1], DB_CREATE | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_TXN | DB_PRIVATE | DB_RECOVER, 0),
	    "recovery");
	each(env, NULL, one_table);
	must(env->close(env, 0), "closing the environment");
	must(db_env_create(&env, 0), "environment");
	must(env->open(env, argv[1], DB_CREATE | DB_INIT_MPOOL | DB_PRIVATE, 0), "environment");
	must(db_create(&db, env, 0), "handle");
	must(db->verify(db, "pinfold.db", NULL, NULL, 0), "a tree is broken");
	must(env->close(env, 0), "closing");
	return 0;
}
