#!/bin/bash
# pinfold setup and pinfold config check: what is made, with which modes, and what bad files are told.
cli=${PINFOLD_CLI_UNDER_TEST:-./cli/pinfold}
root=$(mktemp -d /tmp/pinfold-setup.XXXXXX) || exit 1
trap 'rm -rf "$root"' EXIT
export PINFOLD_ROOT=$root SETUP_KEY=sk-key-of-the-test
good=0 bad=0
check() { if [ "$2" = "$3" ]; then good=$((good + 1)); else bad=$((bad + 1)); echo "FAIL $1: got <$2>, wanted <$3>"; fi; }
has() { case $2 in *"$3"*) good=$((good + 1)) ;; *) bad=$((bad + 1)); echo "FAIL $1: no <$3> in <$2>" ;; esac; }
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }

"$cli" setup --uid-base 1700000000 --provider-key-env SETUP_KEY --model m1 2>"$root/err"
check "setup succeeds" $? 0
etc=$(dirname "$(find "$root" -name pinfold.conf)")
[ -d "$etc/secrets" ] || { echo "nothing was set up"; exit 1; }
check "secrets folder" "$(stat -c %a:%u "$etc/secrets")" 700:0
check "run-token mode" "$(stat -c %a:%u "$etc/secrets/run-token")" 600:0
check "vapid mode" "$(stat -c %a:%u "$etc/secrets/vapid")" 600:0
check "vapid is a key of its own" "$(tr -d 'A-Za-z0-9_-' <"$etc/secrets/vapid" | wc -c):$(wc -c <"$etc/secrets/vapid"):$(cmp -s "$etc/secrets/vapid" "$etc/secrets/run-token" && echo same)" 0:43:
check "provider key mode" "$(stat -c %a:%u "$etc/secrets/provider-default")" 600:0
check "provider key is whole" "$(cat "$etc/secrets/provider-default")" sk-key-of-the-test
check "no key elsewhere" "$(grep -rlF sk-key-of-the-test "$etc" | grep -v /secrets/)" ""
check "no key in what was said" "$(grep -cF sk-key-of-the-test "$root/err")" 0
[ "$(wc -c <"$etc/secrets/run-token")" -ge 43 ] && good=$((good + 1)) || { bad=$((bad + 1)); echo "FAIL run-token is short"; }
before=$(find "$etc" -type f -exec sha256sum {} + | sort)
"$cli" setup --model other 2>/dev/null
check "setup again succeeds" $? 0
has "what was asked for and is not so is told" "$("$cli" setup --model other 2>&1)" "profiles.d/default.conf is there already and stays as it is"
has "a provider too" "$("$cli" setup --base-url https://other.example/v1 2>&1)" "providers.d/default.conf is there already and stays as it is"
has "a key too" "$(SETUP_KEY=sk-another "$cli" setup --provider-key-env SETUP_KEY 2>&1)" "pinfold secret rotate provider-default"
check "the same as before is no matter" "$("$cli" setup --uid-base 1700000000 --provider-key-env SETUP_KEY --model m1 2>&1)" ""
has "an address that is none" "$("$cli" setup --base-url ftp://other.example/v1 2>&1)" "--base-url is not https"
check "setup again changes nothing" "$(find "$etc" -type f -exec sha256sum {} + | sort)" "$before"
has "a store that cannot be looked at" "$("$cli" store check 2>&1)" "nothing is known about it"
has "config check" "$("$cli" config check 2>&1)" "configuration ok: 3 tenants, 1 model profiles, 4 agents, 1 providers"
check "a quote in a value is refused" "$("$cli" setup --model 'a"b' >/dev/null 2>&1; echo $?)" 2
while read -r args; do
	check "nothing is ignored: $args" "$("$cli" $args >/dev/null 2>&1; echo $?)" 2
done <<'T'
ps more
show a b
cancel a b
events -f a b
artifacts a patch more
run -i one -i two
token create more
token revoke a b
setup more
T
has "a command's help" "$("$cli" run --help)" "usage: pinfold run"
check "a low uid base is refused" "$("$cli" setup --uid-base 1000 >/dev/null 2>&1; echo $?)" 2

# FILE|TEXT that is appended|what must be said
while IFS='|' read -r file text want; do
	cp -a "$etc" "$root/saved"
	printf '%b\n' "$text" >>"$etc/$file"
	said=$("$cli" config check 2>&1)
	check "refused: $text" $? 1
	has "said for: $text" "$said" "$want"
	rm -rf "$etc" && mv "$root/saved" "$etc"
done <<'T'
pinfold.conf|gateway_port = 80|gateway_port must be a number from 1024 to 65535, not 80
pinfold.conf|audit_content = "some"|audit_content must be full or none
pinfold.conf|mask_secrets = "yes"|mask_secrets must be questions, events or none
pinfold.conf|agent "x" {\ncommand = {"/bin/true"}\nupload_tests = "never"\n}|upload_tests must be doubt or always
pinfold.conf|public_url = "https://host/page"|public_url must be an origin
pinfold.conf|public_url = "https://Host"|public_url must be an origin
pinfold.conf|public_url = "https://host:443"|public_url must be an origin
pinfold.conf|public_url = "host"|public_url must be an origin
pinfold.conf|log_to = "files"|log_to must be stderr, journal, syslog or file
pinfold.conf|log_to = "file"|log_path must be an absolute path
pinfold.conf|log_path = "log"|log_path must be an absolute path
pinfold.conf|push_hosts = {"https://push.example.com"}|is neither a host's name
pinfold.conf|push_hosts = {"127.0.0.1"}|is neither a host's name
pinfold.conf|push_hosts = {"*.localhost"}|is neither a host's name
pinfold.conf|push_contact = "ops@example.org"|push_contact must be as
pinfold.conf|push_contact = "mailto:ops"|push_contact must be as
pinfold.conf|push_contact = "http://example.org"|push_contact must be as
pinfold.conf|users {\npush = "no-such-user-here"\n}|there is no user "no-such-user-here"
providers.d/default.conf|provider "p6" { base_url = "https://p6.example/v1" secret = "vapid" }|secret "vapid" is named for two purposes
pinfold.conf|run_token_secret_next = "vapid"|secret "vapid" is named for two purposes
pinfold.conf|nonsense = 1|there is no setting "nonsense" outside of sections
pinfold.conf|max_boxs = 1|is "max_boxes" meant?
providers.d/default.conf|provider "p7" { base_url = "https://p7.example/v1" secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD" }|this looks like the key itself
pinfold.conf|run_token_secret = "../x"|named by its file's name alone
pinfold.conf|web_group = "no-such-group-here"|there is no group "no-such-group-here"
pinfold.conf|users {\nfcgi = "no-such-user-here"\n}|there is no user "no-such-user-here"
providers.d/default.conf|provider "p2" { protocol = "smoke" }|protocol must be openai
providers.d/default.conf|gateway_port = 9000|it belongs into pinfold.conf, outside of sections
providers.d/default.conf|provider "p3" { }|provider p3: base_url is missing
providers.d/default.conf|provider "p4" { base_url = "https://p4.example/v1" secret = "run-token" }|secret "run-token" is named for two purposes
pinfold.conf|run_token_secret_next = "run-token"|secret "run-token" is named for two purposes
profiles.d/default.conf|model_profile "p2" { provider = "default" }|model is missing
profiles.d/default.conf|model_profile "p3" { provider = "nobody" model = "m" }|model_profile p3: there is no provider "nobody"
profiles.d/default.conf|agent "a2" { command = {"relative"} }|absolute path inside the sandbox
profiles.d/default.conf|agent "a3" { command = {"/x"} environment = {"NOVALUE"} }|NAME=value
tenants.d/default.conf|tenant "t2" { agent = "nobody" }|tenant t2: there is no agent "nobody"
tenants.d/default.conf|tenant "bad name" { }|other characters
tenants.d/default.conf|tenant "t3" { max_steps = 5000 }|max_steps must be
tenants.d/default.conf|tenant "t4" { check { argv = {} } }|argv is missing: a list of at least 1
tenants.d/default.conf|tenant "t5" {|ends in the middle of a section
T
# The line that is named is the one that is meant, whatever comments stand before it: their lines, and what is a comment.
while IFS='|' read -r before line; do
	cp "$etc/pinfold.conf" "$root/saved.conf"
	printf '%b\n' "$before" >"$etc/pinfold.conf"
	cat "$root/saved.conf" >>"$etc/pinfold.conf"
	printf 'nonsense = 1 # one\n# two\n' >>"$etc/pinfold.conf"
	has "a line behind: $before" "$("$cli" config check 2>&1)" "pinfold.conf:$(grep -n ^nonsense "$etc/pinfold.conf" | cut -d: -f1): there is no setting \"nonsense\""
	mv "$root/saved.conf" "$etc/pinfold.conf"
done <<'T'
|
# one\n# two\n\n# three
// one\n\n/* two\n * three "\n\n */
public_url = "https://a.example" # one // two
push_contact = "mailto:a#b@example.org" /* one */ # two '
push_contact = 'https://a.example/"#'\n# "
push_contact = "https://a.example/\\\\\"#"\n#
T
has "what stands in quotes is no comment" "$(echo 'push_contact = "https://a.example/#//&"' >>"$etc/pinfold.conf" && "$cli" config check 2>&1)" "configuration ok"
sed -i '$d' "$etc/pinfold.conf"
cp -a "$etc" "$root/saved"
echo 'provider "p5" { base_url = "https://p5.example/v1" secret = "provider-default" }' >>"$etc/providers.d/default.conf"
"$cli" config check >/dev/null 2>&1
check "two providers with one key" $? 0
rm -rf "$etc" && mv "$root/saved" "$etc"
# Every number of the table, one below its bounds and then one above, each in a section like others: all are told at once.
numbers() { awk -F '\t' '/^[^#]/ && $6 ~ /^[0-9]/ && $7 ~ /^[0-9]/ && $3 !~ /^(texts|hosts|argv|command|environment|names:.*)$/ { print $1 "|" $2 "|" $6 "|" $7 }' "${srcdir:-.}/spec/conf.tab"; }
[ "$(numbers | wc -l)" -ge 30 ] || { bad=$((bad + 1)) && echo "FAIL no bounds were found in spec/conf.tab"; }
for way in -1 1; do
	cp -a "$etc" "$root/saved"
	while IFS='|' read -r section name min max; do
		[ $way = 1 ] && value=$((max + 1)) || value=$((min - 1))
		case $section in
		machine) file=pinfold.conf text="$name = $value" title= ;;
		agent) file=profiles.d/default.conf title="agent n-$name: " text="agent \"n-$name\" { command = {\"/x\"} $name = $value }" ;;
		tenant) file=tenants.d/default.conf title="tenant n-$name: " text="tenant \"n-$name\" { $name = $value }" ;;
		esac
		sed -i "s/^$name .*//" "$etc/$file"
		echo "$text" >>"$etc/$file"
		echo "$etc/$file:$(wc -l <"$etc/$file"): $title$name must be a number from $min to $max, not $value" >>"$root/wanted$way"
	done < <(numbers)
	"$cli" config check 2>&1 | sed 's/ a number of [a-z]* from/ a number from/' | sort >"$root/said"
	check "every number is refused, by its name" "$(sort "$root/wanted$way" | diff - "$root/said")" ""
	rm -rf "$etc" && mv "$root/saved" "$etc"
done
has "a missing key is asked for" "$(PINFOLD_ROOT=$root/second "$cli" setup 2>&1)" "put the provider's key into"
rm "$etc/tenants.d/default.conf" "$etc/tenants.d/attack.conf"
has "no tenant" "$("$cli" config check 2>&1)" "needs at least one"
rm "$etc/pinfold.conf"
has "no file" "$("$cli" config check 2>&1)" 'run "pinfold setup"'
echo "$good passed, $bad failed"
[ $bad = 0 ]
