# Generates the table of figures from spec/metrics.tab (tab separated).
#
#   awk -v out=h|c|md -f tools/gen-metrics.awk spec/metrics.tab
#
# Refused: a name used twice or of a bad form, a counter that does not end in _total (or another that does), an unknown
# type or process, bad labels, a help text that Prometheus would have to escape.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function word(s) { sub(/^pinfold_/, "", s); return "METRIC_" toupper(s) }
BEGIN { FS = "\t"; n = 0 }
/^#/ || /^[ \t]*$/ { next }
{
  if (NF != 5) die("name, type, by, labels and help, separated by one tab each")
  if ($1 !~ /^pinfold_[a-z]+(_[a-z]+)*$/) die("bad name " $1)
  if ($1 in seen) die($1 " is there twice")
  seen[$1] = 1
  if ($2 !~ /^(counter|gauge|histogram)$/) die("unknown type " $2)
  if (($1 ~ /_total$/) != ($2 == "counter")) die("a counter, and nothing else, ends in _total: " $1)
  if ($2 == "histogram" && $1 !~ /_seconds$/) die("a histogram is of seconds: " $1)
  if ($3 !~ /^(stored|fcgi|steward)$/) die("unknown process " $3)
  if ($4 != "-") {
    k = split($4, a, ",")
    for (i = 1; i <= k; i++) if (a[i] !~ /^[a-z]+$/ || a[i] == "le") die("bad label " a[i])
    if (k > 3) die("more than 3 labels")
  }
  if ($5 ~ /[\\]/ || $5 !~ /\.$/) die("the help is a sentence without a backslash")
  name[n] = $1; type[n] = $2; by[n] = $3; labels[n] = $4; help[n] = $5; n++
  if (n > 200) die("too many figures")
}
END {
  if (failed) exit 1
  if (!n) { print FILENAME ": no figures" > "/dev/stderr"; exit 1 }
  if (out == "h") {
    print "/* Generated from spec/metrics.tab by tools/gen-metrics.awk; do not edit. */"
    print "#ifndef GEN_METRICS_H\n#define GEN_METRICS_H\n\nenum metric {"
    for (i = 0; i < n; i++) print "\t" word(name[i]) ","
    print "\tMETRIC__COUNT\n};\n"
    print "enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };"
    print "enum metric_by { METRIC_BY_STORED, METRIC_BY_FCGI, METRIC_BY_STEWARD, METRIC_BY__COUNT };\n"
    print "struct metric_row {\n\tconst char *name, *help;\n\tconst char *labels[4]; /* ends with NULL */\n\tenum metric_type type;\n\tenum metric_by by;\n};"
    print "extern const struct metric_row metrics[METRIC__COUNT];\n#endif"
  } else if (out == "c") {
    print "/* Generated from spec/metrics.tab by tools/gen-metrics.awk; do not edit. */\n#include \"gen/metrics.h\"\n#include <stddef.h>\n\nconst struct metric_row metrics[METRIC__COUNT] = {"
    for (i = 0; i < n; i++) {
      k = labels[i] == "-" ? 0 : split(labels[i], a, ",")
      l = ""
      for (j = 1; j <= k; j++) l = l "\"" a[j] "\", "
      h = help[i]; gsub(/"/, "\\\"", h)
      printf "\t[%s] = {\"%s\", \"%s\", {%sNULL}, METRIC_%s, METRIC_BY_%s},\n", word(name[i]), name[i], h, l, toupper(type[i]), toupper(by[i])
    }
    print "};"
  } else if (out == "md") {
    print "# Figures\n\nGenerated from `spec/metrics.tab`. `GET /metrics` (a token made by `pinfold token create --metrics`) and"
    print "`pinfold metrics` (root) show these, and nothing else; what fcgi and steward count may be a second older in the latter."
    print "No label names a tenant, a run, a device, a token or an address. Counters begin anew when the process that counts them"
    print "does, which Prometheus expects. A figure with labels that nothing was counted of has no line yet. Durations are"
    print "histograms of seconds, all with the same bounds.\n"
    print "| figure | type | counted by | labels | meaning |\n|---|---|---|---|---|"
    for (i = 0; i < n; i++) { l = labels[i] == "-" ? "" : "`" labels[i] "`"; gsub(/,/, "`, `", l); printf "| `%s` | %s | %s | %s | %s |\n", name[i], type[i], by[i], l, help[i] }
  } else { print "gen-metrics.awk: out must be h, c or md" > "/dev/stderr"; exit 1 }
}
