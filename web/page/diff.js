// A patch as git writes it, taken apart into files and lines. Pure: no page is needed to test it.

// [{name, from, kind: "changed|added|removed|renamed", added, removed, rows: [{kind, old, now, text}]}], where a row's
// kind is "hunk", "same", "added", "removed" or "note". What it does not understand stays a note: nothing is left out.
export function parse(patch) {
	const files = [];
	let file = null, old = 0, now = 0, left = 0, right = 0;
	const lines = patch.split("\n");
	if (lines.at(-1) === "")
		lines.pop();
	for (const line of lines) {
		// Within a hunk only its own counts say where it ends: a removed line may read "-- a/x".
		if (left > 0 || right > 0) {
			const text = line.slice(1);
			if (line[0] === "+") {
				file.rows.push({kind: "added", old: null, now: now++, text});
				file.added++;
				right--;
				continue;
			}
			if (line[0] === "-") {
				file.rows.push({kind: "removed", old: old++, now: null, text});
				file.removed++;
				left--;
				continue;
			}
			if (line[0] === " " || line === "") {
				file.rows.push({kind: "same", old: old++, now: now++, text});
				left--;
				right--;
				continue;
			}
			if (line[0] === "\\") {
				file.rows.push({kind: "note", old: null, now: null, text: line.slice(2)});
				continue;
			}
			left = right = 0;
		}
		if (line.startsWith("diff --git ")) {
			file = begin(nameOf(line));
			files.push(file);
			continue;
		}
		if (file === null) {
			file = begin("");
			files.push(file);
		}
		const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line);
		if (hunk) {
			old = Number(hunk[1]);
			now = Number(hunk[3]);
			left = hunk[2] === undefined ? 1 : Number(hunk[2]);
			right = hunk[4] === undefined ? 1 : Number(hunk[4]);
			file.rows.push({kind: "hunk", old: null, now: null, text: line});
		} else if (line.startsWith("new file ")) {
			file.kind = "added";
		} else if (line.startsWith("deleted file ")) {
			file.kind = "removed";
		} else if (line.startsWith("rename from ")) {
			file.kind = "renamed";
			file.from = line.slice(12);
		} else if (line.startsWith("rename to ")) {
			file.name = line.slice(10);
		} else if (line.startsWith("+++ ") || line.startsWith("--- ")) {
			if (file.name === "" && line.slice(4) !== "/dev/null")
				file.name = line.slice(4).replace(/^[ab]\//, "");
		} else if (line.startsWith("\\ ")) {
			file.rows.push({kind: "note", old: null, now: null, text: line.slice(2)});
		} else if (!line.startsWith("index ") && !line.startsWith("similarity index ")) {
			file.rows.push({kind: "note", old: null, now: null, text: line});
		}
	}
	return files;
}

const begin = name => ({name, from: null, kind: "changed", added: 0, removed: 0, rows: []});

// "diff --git a/NAME b/NAME": both are the same but for a rename, whose own lines say it.
function nameOf(line) {
	const both = line.slice("diff --git ".length);
	const half = (both.length - 1) / 2;
	if (Number.isInteger(half) && both.slice(2, half) === both.slice(half + 3))
		return both.slice(2, half);
	return both.slice(both.lastIndexOf(" b/") + 3);
}
