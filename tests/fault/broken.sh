#!/bin/bash
# broken.sh [NAME...]: shows that the fault harness can fail. For each rule (or those named) it copies the tree, breaks the
# rule there by one edit, builds the copy and runs chaos until that notices. A rule that is broken unnoticed is a failure,
# and so is an edit that no longer finds its place. As root; works in folders of its own.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
say() { printf '%s\n' "$*" >&2; }
work=$(mktemp -d /tmp/pinfold-broken.XXXXXX) || exit 1
chmod 711 "$work"
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 143' TERM INT

# Each: its name, and the faults that bring it out.
rules='early stop agent,kill agent
refund kill gateway,kill fcgi
deaf lost wake-up
hasty power cut
trusting in recovery
swayed kill fcgi,kill gateway
forgetful kill fcgi'

# A terminal state is committed before the box is gone.
break_early() { sed -i '/^void run_cancel(/,/^}/ s/^	r->revoked = true;.*/&\n	if (r->boxes != 0) {\n		run_settle(app, r);\n		return;\n	}/' steward/run.c; }
# A unit of the budget is given back.
break_refund() {
	sed -i '/op_model_called(/,/^}/ s/^	r.prompt_tokens += m->prompt_tokens;/	struct rec_capability back;\n	if (m->status != 200 \&\& capability_get(t, m->tenant, m->run, \&back) \&\& back.used_requests > 0) {\n		back.used_requests--;\n		capability_put(t, m->tenant, m->run, \&back);\n		r.used_requests = back.used_requests;\n	}\n&/' store/op_capability.c
}
# What wake-ups miss is found by nobody: the open runs are read once and never again.
break_deaf() {
	sed -i '/^static void read_open(/,/^}/ s/^	app->resync = false;/&\n	static bool read;\n	app->resync_at = UINT64_MAX;\n	if (read)\n		return;/; /^static void read_open(/,/^}/ s/^	app->resync_at = timer_ms() .*/	read = true;/' steward/sweep.c
}
# An answer is sent before the flush.
break_hasty() { sed -i '/^static bool send_early(/,/^}/ s/^	size_t early = 0;/&\n	for (size_t i = 0; i < sv->nanswers; i++)\n		sv->answers[i].early = true;/' store/batch.c; }

# What an earlier life wrote is taken for durable.
break_trusting() { sed -i '/^	flush_earlier_life(s->dir);/d' store/env.c; }

# The last decision of a question counts.
break_swayed() {
	sed -i '/^static enum err open_question(/,/^}/ s/^	e = approval_step(.*/&\n	if (e == ERR_ALREADY_DECIDED) {\n		q->status = APPROVAL_PENDING;\n		e = ERR_OK;\n	}/' store/op_approvals.c
}

# Who comes back to a stream is told everything again.
break_forgetful() { sed -i '/^void stream_answer(/,/^}/ s/\.after = cursor .*/.after = 0};/' handlers/stream.c; }

bad=0 seen=0
while read -r name faults; do
	case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
	seen=$((seen + 1))
	say "breaking a rule: $name"
	rm -rf "$work/tree" "$work/build"
	mkdir -p "$work/tree" "$work/build" || exit 1
	(cd "$top" && git ls-files -z | xargs -0 cp --parents -t "$work/tree") || exit 1
	(cd "$work/tree" && "break_$name")
	if (cd "$top" && git ls-files -z | xargs -0 -I{} cmp -s {} "$work/tree/{}"); then
		echo "FAIL $name: the edit does not find its place"
		bad=$((bad + 1))
		continue
	fi
	if ! (cd "$work/tree" && autoreconf -fi && cd "$work/build" && ../tree/configure -q --prefix=/usr --sysconfdir=/etc \
		--localstatedir=/var --libexecdir=/usr/libexec && make -j"$(nproc)") >"$work/log" 2>&1; then
		tail -n 20 "$work/log"
		echo "FAIL $name: the copy does not build"
		bad=$((bad + 1))
		continue
	fi
	make -C "$work/build" chaos ROUNDS="${ROUNDS:-60}" SEED="${SEED:-0}" ONLY="$faults" KEEP="$work/kept" >"$work/log" 2>&1
	status=$?
	rounds=$(grep -c '^round' "$work/log")
	rm -rf --one-file-system "$work/kept"
	if [ $status -ne 0 ] && [ "$rounds" -gt 0 ] && grep -qE '^(VIOLATION|FAIL it does not serve again)' "$work/log"; then
		echo "ok $name: noticed after $rounds rounds: $(grep -m 1 -E '^(VIOLATION|FAIL)' "$work/log" | cut -c 1-300)"
	else
		tail -n 20 "$work/log"
		echo "FAIL $name: not noticed in $rounds rounds"
		bad=$((bad + 1))
	fi
done <<<"$rules"
echo "$((seen - bad)) passed, $bad failed"
[ $bad -eq 0 ] && [ $seen -gt 0 ]
