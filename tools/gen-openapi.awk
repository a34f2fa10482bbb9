# Generates the API's description from the tables: OpenAPI 3.1 for programs, markdown for people.
#
#   awk -v out=json|md -f tools/gen-openapi.awk spec/errors.tab spec/routes.tab spec/schema.tab spec/limits.tab spec/reasons.tab spec/responses.tab
#
# Only public routes are in the document; docs/api.md names the others too. See responses.tab's head for its lines.
# Refused: a public route without an answer or a sentence, lines for a route, shape, error or header that is none,
# a field whose parent has no line.

function die(why) { printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
function quote(s) { gsub(/\\/, "&&", s); gsub(/"/, "\\\"", s); gsub(/\t/, " ", s); return "\"" s "\"" }
function camel(s, part, k, i, r) { k = split(s, part, "_"); r = part[1]; for (i = 2; i <= k; i++) r = r toupper(substr(part[i], 1, 1)) substr(part[i], 2); return r }
# A row of a body or shape: "type" is in the words of responses.tab.
function row(what, f, t, req, text, parent) {
  if ((what, f) in type) die(what " " f " twice")
  parent = f
  if (sub(/\[\]$/, "", parent) || sub(/\.[a-zA-Z0-9_]+$/, "", parent)) {
    if (!((what, parent) in type)) die(what ": " f " has no parent")
  } else parent = ""
  type[what, f] = t; must[what, f] = req; words[what, f] = text
  kids[what, parent] = kids[what, parent] f "\n"
}
function last(f) { sub(/^.*\./, "", f); return f }
# A type of one word, with or without bounds or values, as JSON Schema without the braces.
function plain(t, part, k, i, s, b) {
  if (t == "time") return "\"type\":\"integer\",\"minimum\":0,\"description\":\"Milliseconds since the epoch.\""
  if (t == "any") return ""
  if (t == "reason") t = "word:" reasons
  if (t == "map") return "\"type\":\"object\""
  if (t ~ /\?$/) { sub(/\?$/, "", t); return "\"type\":[\"" t "\",\"null\"]" }
  if (t ~ /^word:/) {
    k = split(substr(t, 6), part, ",")
    for (i = 1; i <= k; i++) s = s (i > 1 ? "," : "") quote(part[i])
    return "\"type\":\"string\",\"enum\":[" s "]"
  }
  if (t ~ /^(string|integer|number):[0-9]+\.\.[0-9]+$/) {
    split(t, part, ":"); split(part[2], b, /\.\./)
    if (part[1] == "string") return "\"type\":\"string\",\"minLength\":" b[1] ",\"maxLength\":" b[2]
    return "\"type\":\"" part[1] "\",\"minimum\":" b[1] ",\"maximum\":" b[2]
  }
  if (t !~ /^(string|integer|number|boolean|object|array)$/) die("unknown type " t)
  return "\"type\":\"" t "\""
}
# The schema of one place and everything below it.
function schema(what, f, closed, t, s, k, kid, i, props, req) {
  t = (f == "" ? "object" : type[what, f])
  s = plain(t)
  if ((what, f) in bounds) s = s bounds[what, f]
  if ((what, f) in words && words[what, f] != "" && t != "time") s = s (s != "" ? "," : "") "\"description\":" quote(words[what, f])
  if (t == "array") {
    kid[1] = f "[]"
    s = s ",\"items\":" (((what, kid[1]) in type) ? schema(what, kid[1], closed) : "{}")
  } else if ((what, f) in kids && (t == "object" || t == "map")) {
    k = split(kids[what, f], kid, "\n")
    for (i = 1; i < k; i++) {
      props = props (i > 1 ? "," : "") quote(last(kid[i])) ":" schema(what, kid[i], closed)
      if (must[what, kid[i]] == "yes") req = req (req != "" ? "," : "") quote(last(kid[i]))
    }
    s = s ",\"properties\":{" props "}" (req != "" ? ",\"required\":[" req "]" : "")
    if (closed && t == "object") s = s ",\"additionalProperties\":false"
  }
  return "{" s "}"
}
function add_codes(h, list, part, k, i) {
  k = split(list, part, ",")
  for (i = 1; i <= k; i++) {
    if (!(part[i] in status)) die("no error " part[i])
    if ((h, part[i]) in has) continue
    has[h, part[i]] = 1
    if ((h, status[part[i]], "shape") in answer) continue
    codes[h, status[part[i]]] = codes[h, status[part[i]]] (codes[h, status[part[i]]] != "" ? "," : "") part[i]
  }
}
# Not for 304: there Apache keeps back what is not about caching.
function headers(list, must_have, part, k, i, s) {
  s = "\"X-Request-Id\":{\"$ref\":\"#/components/headers/RequestId\"},\"Cache-Control\":{\"$ref\":\"#/components/headers/CacheControl\"},\"X-Content-Type-Options\":{\"$ref\":\"#/components/headers/NoSniff\"}"
  k = (list == "-" || list == "" ? 0 : split(list, part, ","))
  for (i = 1; i <= k; i++) {
    if (!(part[i] in header)) die("unknown header " part[i])
    s = s "," quote(part[i]) ":{" (must_have ? "\"required\":true," : "") "\"description\":" quote(header[part[i]]) ",\"schema\":{\"type\":\"string\"}}"
  }
  return "{" s "}"
}
# The answers of a route: status codes in order, so that the document is the same wherever it is made.
function responses(h, st, i, s, k, part, e, ref, later) {
  for (st = 200; st < 600; st++) {
    if ((h, st, "shape") in answer) {
      s = s (s != "" ? "," : "") "\n\"" st "\":{\"description\":" quote(answer[h, st, "text"]) ",\"headers\":" (st == 304 ? "{\"ETag\":{\"required\":true,\"schema\":{\"type\":\"string\"}}}" : headers(answer[h, st, "headers"], 1))
      if (answer[h, st, "type"] != "-") {
        ref = answer[h, st, "shape"]
        s = s ",\"content\":{" quote(answer[h, st, "type"]) ":{\"schema\":" (ref == "-" ? "{\"type\":\"string\"}" : "{\"$ref\":\"#/components/schemas/" ref "\"}") "}" also[h, st, "json"] "}"
      }
      s = s "}"
    } else if (codes[h, st] != "") {
      k = split(codes[h, st], part, ","); e = ""; later = 1
      for (i = 1; i <= k; i++) { e = e (i > 1 ? "," : "") quote(part[i]); if (retry[part[i]] != "yes") later = 0 }
      s = s (s != "" ? "," : "") "\n\"" st "\":{\"description\":" quote("Refused: " codes[h, st] ".") \
        ",\"headers\":" (st == 401 ? headers("WWW-Authenticate", 1) : st == 429 || st == 503 ? headers("Retry-After", later) : headers("-", 0)) \
        ",\"content\":{\"application/json\":{\"schema\":{\"allOf\":[{\"$ref\":\"#/components/schemas/Error\"},{\"properties\":{\"error\":{\"enum\":[" e "]}}}]}}}}"
    }
  }
  return "{" s "}"
}
function parameters(r, s, p, n, k, part, i, q) {
  p = path[r]
  while (match(p, /\{[a-zA-Z]+\}/)) {
    n = substr(p, RSTART + 1, RLENGTH - 2); p = substr(p, RSTART + RLENGTH)
    s = s (s != "" ? "," : "") "{\"name\":" quote(n) ",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128" \
      (n == "runId" ? ",\"pattern\":\"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$\"" : n == "sourceId" ? ",\"pattern\":\"^[0-9a-f]{64}$\"" : "") "}}"
  }
  k = split(inputs[handler[r]], part, "\n")
  for (i = 1; i < k; i++) {
    split(part[i], q, "\t")
    s = s (s != "" ? "," : "") "{\"name\":" quote(q[2]) ",\"in\":\"" q[1] "\",\"description\":" quote(q[4]) ",\"schema\":{" plain(q[3]) "}}"
  }
  return s
}
BEGIN {
  FS = "\t"; nr = nl = ns = 0
  header["Location"] = "The run's address."
  header["ETag"] = "A strong validator."
  header["Retry-After"] = "Seconds to wait before trying again."
  header["WWW-Authenticate"] = "Bearer."
  header["Content-Disposition"] = "attachment, with a file name."
  word["string"] = "string"; word["object"] = "object"; word["array"] = "array"; word["integer"] = "integer"; word["bool"] = "boolean"; word["any"] = "any"; word["map"] = "map"
}
FNR == 1 { nfile++ }
/^#/ || /^[ \t]*$/ { next }
nfile == 1 { if ($2 != "dropped") { status[$2] = $3; retry[$2] = $4 }; next }
nfile == 2 {
  side[nr] = $1; method[nr] = $2; path[nr] = $3; who[nr] = $4; audience[nr] = $5; limit[nr] = $6; ctype[nr] = $7; rights[nr] = $8; handler[nr] = $9
  if ($1 == "public") known[$9] = 1
  limit_of[$9] = $6
  nr++; next
}
nfile == 3 {
  b = $1; if (!(b in bodies)) { bodies[b] = 1 }
  row("body " b, $2, word[$3], $4, "")
  s = ""
  if ($3 == "string") { if ($5 != "-") s = s ",\"minLength\":" $5; if ($6 != "-") s = s ",\"maxLength\":" $6; if ($7 != "-") s = s ",\"description\":\"At most " $7 " bytes of UTF-8.\"" }
  if ($3 == "array") { if ($5 != "-") s = s ",\"minItems\":" $5; if ($6 != "-") s = s ",\"maxItems\":" $6 }
  if ($3 == "integer") { if ($5 != "-") s = s ",\"minimum\":" $5; if ($6 != "-") s = s ",\"maximum\":" $6 }
  if ($3 == "map") { if ($5 != "-") s = s ",\"minProperties\":" $5; if ($6 != "-") s = s ",\"maxProperties\":" $6 }
  bounds["body " b, $2] = s
  bound_of[b, $2, "min"] = $5; bound_of[b, $2, "max"] = $6; bound_of[b, $2, "maxbytes"] = $7
  range["body " b, $2] = ($5 == "-" && $6 == "-" || $3 == "string" && $6 == "-" ? "" : ($5 == "-" ? "" : $5) " to " ($6 == "-" ? "the tenant's limit" : $6)) ($7 == "-" || $7 == $6 ? "" : ($6 == "-" ? "" : ", ") "at most " $7 " bytes")
  list[b] = list[b] $2 "\n"
  codes_of[b] = codes_of[b] (codes_of[b] != "" ? "," : "") $8 (NF == 9 ? "," $9 : "")
  next
}
nfile == 4 { limit_rows[nl++] = $1 "\t" $2 "\t" $3 "\t" $5 "\t" $4; next }
nfile == 5 { reasons = reasons (reasons != "" ? "," : "") $1; reason_rows = reason_rows "| `" $1 "` | " $2 " | " $3 " |\n"; next }
$1 == "about" || $1 == "query" || $1 == "header" || $1 == "answer" || $1 == "also" || $1 == "error" { if (!($2 in known)) die("no public route has the handler " $2) }
$1 == "about" { about[$2] = $3; next }
$1 == "query" || $1 == "header" { if (NF != 5) die("five columns"); plain($4); inputs[$2] = inputs[$2] $1 "\t" $3 "\t" $4 "\t" $5 "\n"; next }
$1 == "answer" {
  if (NF != 7 || $3 !~ /^[2-5][0-9][0-9]$/) die("answer, handler, status, content type, shape, headers, sentence")
  if ($4 == "-" && $5 != "-") die("a shape, but no content type")
  if (($2, $3, "shape") in answer) die($2 " answers " $3 " twice")
  answer[$2, $3, "type"] = $4; answer[$2, $3, "shape"] = $5; answer[$2, $3, "headers"] = $6; answer[$2, $3, "text"] = $7
  headers($6, 1)
  if ($5 != "-") wants[$5] = FNR
  answers[$2] = answers[$2] $3 "\n"; next
}
$1 == "also" {
  if (NF != 5 || answer[$2, $3, "type"] == "" || answer[$2, $3, "type"] == "-" || ($2, $3, "json") in also) die("also, handler, status, content type, sentence; once, behind an answer with content")
  also[$2, $3, "json"] = "," quote($4) ":{\"schema\":{\"type\":\"string\",\"description\":" quote($5) "}}"
  also[$2, $3, "md"] = sprintf("| %d | `%s` | | %s |\n", $3, $4, $5); next
}
$1 == "error" { own[$2] = $3; next }
$1 == "shape" {
  if (NF != 6) die("shape, name, field, type, required, sentence")
  if (!($2 in shapes)) { shapes[$2] = 1; shape_order[ns++] = $2 }
  if ($3 == "*" && $4 == "numbers") {
    if ($5 != "yes" || $6 != "") die("the numbers of limits.tab are all there and have their own sentences")
    for (i = 0; i < nl; i++) {
      split(limit_rows[i], lr, "\t")
      if (!(("shape " $2, lr[1]) in type)) row("shape " $2, lr[1], "object", "yes", "")
      row("shape " $2, lr[1] "." lr[2], "integer", (lr[3] ~ /^agent:/ ? "no" : "yes"), lr[4])
    }
    next
  }
  plain($4)
  row("shape " $2, $3, $4, $5, $6); next
}
{ die("unknown line " $1) }
END {
  if (failed) exit 1
  for (s in wants) if (!(s in shapes)) { printf "%s:%d: no shape %s\n", FILENAME, wants[s], s > "/dev/stderr"; exit 1 }
  for (r = 0; r < nr; r++) if (side[r] == "public") {
    h = handler[r]
    if (about[h] == "" || answers[h] == "") { printf "%s: %s has no sentence or no answer\n", FILENAME, h > "/dev/stderr"; exit 1 }
    add_codes(h, "invalid_request,invalid_query,internal_error,resources_exhausted")
    if (who[r] != "none") add_codes(h, "unauthorized,forbidden,tenant_mismatch,too_many_failures,store_unavailable")
    if (who[r] ~ /device/) add_codes(h, "device_expired,cross_origin_refused")
    if (path[r] ~ /\{runId\}/) add_codes(h, "run_not_found")
    if (path[r] ~ /\{sourceId\}/) add_codes(h, "source_not_found")
    if (ctype[r] == "archive") add_codes(h, "archive_required,invalid_archive,source_archive_too_large")
    else if (ctype[r] != "-") add_codes(h, "request_too_large")
    if (ctype[r] != "-") add_codes(h, "length_mismatch,request_timeout,unsupported_encoding")
    if (ctype[r] == "application/json") add_codes(h, "json_required,invalid_json,invalid_json_object,unknown_field")
    if (h in bodies) add_codes(h, codes_of[h])
    if (own[h] != "") add_codes(h, own[h])
    if (failed) exit 1
  }
  if (out == "json") {
    print "{\"openapi\":\"3.1.0\","
    print "\"info\":{\"title\":\"Pinfold\",\"version\":\"1\",\"description\":\"Runs coding agents for other people's programs without trusting them.\",\"license\":{\"name\":\"ISC\",\"identifier\":\"ISC\"}},"
    print "\"servers\":[{\"url\":\".\",\"description\":\"Where this document is.\"}],"
    print "\"paths\":{"
    first = 1
    for (r = 0; r < nr; r++) if (side[r] == "public" && !(path[r] in printed)) {
      printed[path[r]] = 1
      printf "%s%s:{", (first ? "" : ",\n"), quote(path[r]); first = 0; any = 0
      for (q = r; q < nr; q++) if (side[q] == "public" && path[q] == path[r]) {
        h = handler[q]
        printf "%s\n%s:{\"operationId\":%s,\"summary\":%s,", (any ? "," : ""), quote(tolower(method[q])), quote(camel(h)), quote(about[h]); any = 1
        printf "\"security\":[%s],", (who[q] == "none" ? "" : "{\"bearer\":[]}" (who[q] ~ /device/ ? ",{\"cookie\":[]}" : ""))
        if (who[q] != "none") { w = who[q]; gsub(/,/, "\",\"", w); printf "\"x-pinfold-principals\":[\"%s\"],", w }
        if (rights[q] != "-") printf "\"x-pinfold-right\":%s,", quote(rights[q])
        p = parameters(q); if (p != "") printf "\"parameters\":[%s],", p
        if (ctype[q] == "application/json") printf "\n\"requestBody\":{\"required\":true,\"description\":\"At most %d bytes.\",\"content\":{\"application/json\":{\"schema\":%s}}},", limit[q], ((h in bodies) ? schema("body " h, "", 1) : "{\"type\":\"object\"}")
        if (ctype[q] == "archive") printf "\n\"requestBody\":{\"required\":true,\"description\":\"The archive, at most source.archiveBytes (GET /v1/limits).\",\"content\":{\"application/x-tar\":{},\"application/gzip\":{},\"application/zstd\":{}}},"
        printf "\n\"responses\":%s}", responses(h)
      }
      printf "}"
    }
    print "},"
    print "\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":\"An API token (pfa_...) or, where a route takes it, a device's (pfd_...).\"},"
    print "\"cookie\":{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"pinfold_device\",\"description\":\"A device's, set by POST /v1/pair; it counts in requests of the service's own page.\"}},"
    print "\"headers\":{\"RequestId\":{\"required\":true,\"description\":\"Name it when asking about this answer.\",\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64}},"
    print "\"CacheControl\":{\"required\":true,\"schema\":{\"type\":\"string\",\"const\":\"no-store\"}},\"NoSniff\":{\"required\":true,\"schema\":{\"type\":\"string\",\"const\":\"nosniff\"}}},"
    print "\"schemas\":{"
    for (i = 0; i < ns; i++) printf "%s%s:%s", (i ? ",\n" : ""), quote(shape_order[i]), schema("shape " shape_order[i], "", 0)
    print "}}}"
  } else if (out == "md") {
    print "# The HTTP API\n\nMade from the tables in `spec/` by `make docs`; change those. The same as a document for programs: `GET /openapi.json`."
    print "Every code with its sentence: [errors.md](errors.md).\n"
    print "Every answer carries `X-Request-Id`, `Cache-Control: no-store` and `X-Content-Type-Options: nosniff`. The request id is made"
    print "by Pinfold, or taken from the web server's own configuration (the FastCGI parameter `PINFOLD_REQUEST_ID`), never from the"
    print "client; it is in the error's body, in the log and in the audit line of what the request changed.\n"
    print "Addresses are relative to where the web server mounts Pinfold. Send the token as `Authorization: Bearer ...`. Times are"
    print "milliseconds since the epoch.\n"
    print "A run, from its creation to its patch, with `$URL` where Pinfold is served and `$TOKEN` an API token:\n\n```"
    print "curl -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/json\" -H \"Idempotency-Key: try-1\" $URL/v1/runs \\"
    print "  -d '{\"instruction\": \"Make add() add.\", \"files\": [{\"path\": \"calc.py\", \"content\": \"def add(a, b):\\n    return a - b\\n\"}],"
    print "       \"allowedPaths\": [\"calc.py\"], \"checks\": [[\"git\", \"diff\", \"--check\"]]}'   # 202, with the runId"
    print "curl -H \"Authorization: Bearer $TOKEN\" $URL/v1/runs/$RUN                   # until status is completed, failed or cancelled"
    print "curl -H \"Authorization: Bearer $TOKEN\" $URL/v1/runs/$RUN/artifacts/patch\n```\n"
    print "## Routes\n\n| route | who | |\n| --- | --- | --- |"
    for (r = 0; r < nr; r++) if (side[r] == "public") printf "| `%s %s` | %s | %s |\n", method[r], path[r], (who[r] == "none" ? "anyone" : who[r]) (rights[r] != "-" ? " with the right `" rights[r] "`" : ""), about[handler[r]]
    for (r = 0; r < nr; r++) if (side[r] == "public") {
      h = handler[r]
      printf "\n## %s %s\n\n%s\n", method[r], path[r], about[h]
      k = split(inputs[h], part, "\n")
      if (k > 1) print "\n| parameter | in | type | |\n| --- | --- | --- | --- |"
      for (i = 1; i < k; i++) { split(part[i], col, "\t"); t = col[3]; sub(/^word:/, "", t); gsub(/,/, " ", t); printf "| `%s` | %s | %s | %s |\n", col[2], col[1], t, col[4] }
      if (h in bodies) {
        printf "\nBody: JSON, at most %d bytes.\n\n| field | type | required | bounds |\n| --- | --- | --- | --- |\n", limit[r]
        k = split(list[h], part, "\n")
        for (i = 1; i < k; i++) printf "| `%s` | %s | %s | %s |\n", part[i], type["body " h, part[i]], must["body " h, part[i]], range["body " h, part[i]]
      }
      if (ctype[r] == "archive") print "\nBody: the archive, as `application/x-tar`, `application/gzip` or `application/zstd`, at most `source.archiveBytes` of `GET /v1/limits`."
      print "\n| status | content | headers | |\n| --- | --- | --- | --- |"
      for (st = 200; st < 600; st++) {
        if ((h, st, "shape") in answer) {
          s = answer[h, st, "shape"]
          link = tolower(s); t = answer[h, st, "type"]
          printf "| %d | %s%s | %s | %s |\n", st, (t == "-" ? "" : "`" t "`"), (s == "-" ? "" : " [" s "](#" link ")"), (answer[h, st, "headers"] == "-" ? "" : answer[h, st, "headers"]), answer[h, st, "text"]
          printf "%s", also[h, st, "md"]
        } else if (codes[h, st] != "") { c = codes[h, st]; gsub(/,/, "` `", c); printf "| %d | `application/json` [Error](#error) | | `%s` |\n", st, c }
      }
    }
    print "\n## For agents, inside a sandbox\n\nAt `http://127.0.0.1:9797` (the configured port), with the run's own tokens; [approvals.md](approvals.md) shows how. These are not in `openapi.json`.\n\n| route | token for | body up to |\n| --- | --- | --- |"
    for (r = 0; r < nr; r++) if (side[r] == "internal") printf "| `%s %s` | %s | %s |\n", method[r], path[r], audience[r], (limit[r] + 0 ? limit[r] " bytes" : "")
    print "\n## Limits\n\nWhat `GET /v1/limits` names. \"configured\" is the administrator's number for this tenant or service.\n\n| limit | value | unit | of what |\n| --- | --- | --- | --- |"
    for (i = 0; i < nl; i++) {
      split(limit_rows[i], lr, "\t"); split(lr[3], part, ":")
      v = (lr[3] ~ /^[0-9]+$/ ? lr[3] : part[1] == "routes" ? limit_of[part[2]] : part[1] == "schema" ? bound_of[part[2], part[3], part[4]] : "configured")
      printf "| `%s.%s` | %s | %s | %s |\n", lr[1], lr[2], v, lr[5], lr[4]
    }
    printf "\n## Why a run has ended\n\n`terminalReason` of a run that has ended, with the status that goes with it. `error` is the code of [errors.md](errors.md).\n\n| reason | status | |\n| --- | --- | --- |\n%s", reason_rows
    print "\n## Shapes\n\nA client must take fields that are not named here."
    for (i = 0; i < ns; i++) {
      printf "\n### %s\n\n| field | type | always | |\n| --- | --- | --- | --- |\n", shape_order[i]
      tree("shape " shape_order[i], "")
    }
  } else { print "gen-openapi.awk: out must be json or md" > "/dev/stderr"; exit 1 }
}
function tree(what, f, k, kid, i, t) {
  k = split(kids[what, f], kid, "\n")
  for (i = 1; i < k; i++) {
    t = type[what, kid[i]]; if (t == "reason") t = "[reason](#why-a-run-has-ended)"; sub(/^word:/, "", t); gsub(/,/, " ", t); sub(/\?$/, " or null", t)
    printf "| `%s` | %s | %s | %s |\n", kid[i], t, must[what, kid[i]], words[what, kid[i]]
    tree(what, kid[i])
  }
}
