# SPDX-License-Identifier: Apache-2.0
# Makes C of the tables beside it: awk -f generate.awk xid.tsv nvlink5.tsv sxid.tsv
# aer_bits.tsv throttle_bits.tsv causes.tsv
# What each row says stays as it is written there; words that the code decides by become numbers.
# An unknown word, a missing column or a code out of order ends the build with its file and line.

function fail(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
    failed = 1
    exit 1
}

function text(value) {
    gsub(/\\/, "\\\\", value)
    gsub(/"/, "\\\"", value)
    return "\"" value "\""
}

# All columns of the row as C texts, from column `first` on.
function texts(first,    i, all) {
    for (i = first; i <= NF; i++)
        all = all (i > first ? ", " : "") text($i)
    return all
}

function word(known, value, what) {
    if (!(value in known))
        fail("unknown " what " '" value "'")
    return known[value]
}

function end_table() {
    if (open)
        printf "};\nconst size_t %s_COUNT = %d;\n", open, rows
    rows = 0
}

function begin_table(type, name, columns) {
    end_table()
    open = name
    want = columns
    printf "\nconst struct %s %s[] = {\n", type, name
}

# Codes that "(also 40, 70-72)" in a meaning names.
function add_aliases(meaning, row,    list, parts, i, n, ends, code) {
    if (!match(meaning, /\(also [-0-9, ]+\)/))
        return
    list = substr(meaning, RSTART + 6, RLENGTH - 7)
    n = split(list, parts, /, */)
    for (i = 1; i <= n; i++) {
        if (split(parts[i], ends, "-") == 1)
            ends[2] = ends[1]
        for (code = ends[1] + 0; code <= ends[2] + 0; code++)
            aliases = aliases sprintf("    {%d, %d},\n", code, row)
    }
}

BEGIN {
    FS = "\t"
    split("hardware ambiguous application driver informational consequence action detail", names, " ")
    for (i in names)
        class["" names[i]] = "XID_CLASS_" toupper(names[i])
    severity["info"] = "SEVERITY_INFO"
    severity["warning"] = "SEVERITY_WARNING"
    severity["error"] = "SEVERITY_ERROR"
    severity["critical"] = "SEVERITY_CRITICAL"
    severity["critical if Fatal else warning"] = "SEVERITY_CRITICAL"
    anchor["no"] = "XID_ANCHOR_NO"
    anchor["yes_low"] = "XID_ANCHOR_LOW"
    anchor["yes"] = "XID_ANCHOR_YES"
    anchor["yes if Fatal"] = "XID_ANCHOR_YES"
    role["no"] = "XID_HBM_NO"
    role["context"] = "XID_HBM_CONTEXT"
    role["storm"] = "XID_HBM_STORM"
    role["anchor"] = "XID_HBM_ANCHOR"
    split("monitor restart_app fix_workload reset_gpu drain_node replace_hardware check_link contact_support", names, " ")
    for (i in names)
        action["" names[i]] = names[i]
    action["reset_gpu_when_free"] = "reset_gpu"
    action["reset_gpu if Fatal else monitor"] = "reset_gpu"
    action["follow_other"] = ""
    action["use_text"] = ""
    split("nothing note software peer ends_process fatal", names, " ")
    for (i in names)
        judged["" names[i]] = "NVLINK5_" toupper(names[i])
    split("no yes rare restart follow", names, " ")
    for (i in names)
        harm["" names[i]] = "SXID_HARMLESS_" toupper(names[i])
    sxid_severity["fatal"] = "KERNEL_FATAL_YES"
    sxid_severity["nonfatal"] = "KERNEL_FATAL_NO"
    sxid_severity["line"] = "KERNEL_FATAL_UNKNOWN"
    layer["physical"] = layer["data link"] = layer["transaction"] = 1
    default_severity["correctable"] = "AER_CORRECTABLE"
    default_severity["nonfatal"] = "AER_NONFATAL"
    default_severity["fatal"] = "AER_FATAL"
    split("unknown helps in_vain elsewhere", names, " ")
    for (i in names)
        restart["" names[i]] = "RESTART_" toupper(names[i])
    split("restart_app fix_workload inspect_rank check_link reset_gpu drain_node", names, " ")
    for (i in names)
        cause_action["" names[i]] = text(names[i])
    print "// Made by the build from processors/tables/*.tsv."
    print "#include \"processors/cluster/causes.h\""
    print "#include \"processors/cluster/tables.h\""
}

FNR == 1 {
    file = FILENAME
    sub(/.*\//, "", file)
    if (file == "xid.tsv")
        begin_table("xid_row", "XID_ROWS", 12)
    else if (file == "nvlink5.tsv")
        begin_table("nvlink5_row", "NVLINK5_ROWS", 9)
    else if (file == "sxid.tsv")
        begin_table("sxid_row", "SXID_ROWS", 7)
    else if (file == "aer_bits.tsv")
        begin_table("aer_bit", "AER_BITS", 9)
    else if (file == "throttle_bits.tsv")
        begin_table("throttle_bit", "THROTTLE_BITS", 6)
    else if (file == "causes.tsv")
        begin_table("cause_row", "CAUSE_ROWS", 4)
    else
        fail("no table of that name is known")
    last = -1
    next
}

NF != want { fail(NF " columns where " want " must be") }

file == "xid.tsv" {
    if ($1 !~ /^[1-9][0-9]*$/ || $1 + 0 <= last)
        fail("the code '" $1 "' is no number above the one before it")
    last = $1 + 0
    fatal = $5 ~ /Fatal/
    if (fatal != ($9 ~ /Fatal/) || fatal != ($10 ~ /Fatal/))
        fail("severity, action and anchor must depend on the word Fatal together")
    named = word(action, $9, "action")
    printf "    {%d, %s,\n     %s, %s, %s, %s, %s, %s, %s},\n", $1, texts(2),
        word(class, $4, "class"), word(severity, $5, "severity"), word(anchor, $10, "anchor"),
        word(role, $11, "role in hbm_ecc"), named == "" ? "NULL" : text(named),
        fatal ? "true" : "false", $9 ~ /when_free/ ? "true" : "false"
    add_aliases($3, rows)
    rows++
}

file == "nvlink5.tsv" {
    if ($1 !~ /^1(4[4-9]|50)$/ || $3 !~ /^[0-9]+$/ || $3 > 63)
        fail("'" $1 "' is no Xid 144 to 150, or '" $3 "' no number of six bits")
    if ($4 !~ /^0x[0-9a-f]+(,0x[0-9a-f]+)*$/ || split($4, parts, ",") > 6)
        fail("the status '" $4 "' is not one to six numbers")
    printf "    {%d, %s, %d, {%s}, %d, %s,\n     %s},\n", $1, text($2), $3, $4, split($4, parts, ","),
        texts(4), word(judged, $8, "judgement")
    rows++
}

file == "sxid.tsv" {
    if ($1 !~ /^[1-9][0-9]*$/ || $1 + 0 <= last)
        fail("the code '" $1 "' is no number above the one before it")
    last = $1 + 0
    printf "    {%d, %s,\n     %s, %s},\n", $1, texts(2), word(sxid_severity, $3, "severity"),
        word(harm, $4, "word on harm")
    rows++
}

file == "aer_bits.tsv" {
    if ($1 != "correctable" && $1 != "uncorrectable")
        fail("unknown register '" $1 "'")
    if ($2 !~ /^[0-9]+$/ || $2 > 31)
        fail("the bit '" $2 "' is not 0 to 31")
    if (!($5 in layer))
        fail("unknown layer '" $5 "'")
    printf "    {%s, %d, %s,\n     %s},\n", text($1), $2, texts(3),
        word(default_severity, $7, "severity")
    rows++
}

file == "throttle_bits.tsv" {
    if ($1 ~ /^0x[0-9a-f]+$/)
        mask = $1
    else if ($1 == "(newer)")
        mask = 0
    else
        fail("the bit '" $1 "' is neither 0x... nor (newer)")
    printf "    {%s, %s},\n", mask, texts(1)
    rows++
}

# A row for each of the words that "|" parts.
file == "causes.tsv" {
    if ($4 !~ /^(\{Who\}|[A-Z]).*\.$/)
        fail("the advice is no sentence")
    n = split($1, parts, "|")
    for (i = 1; i <= n; i++) {
        for (j = 1; j <= rows; j++)
            if (index(parts[i], words[j]))
                fail("'" parts[i] "' is never found: '" words[j] "' above it is a part of it")
        words[++rows] = parts[i]
        printf "    {%s, %s,\n     %s, %s},\n", text(parts[i]), word(restart, $2, "word on a restart"),
            word(cause_action, $3, "action"), text($4)
    }
}

END {
    if (failed)
        exit 1
    end_table()
    print "\nconst struct xid_alias XID_ALIASES[] = {"
    printf "%s", aliases
    print "};\nconst size_t XID_ALIASES_COUNT = sizeof XID_ALIASES / sizeof *XID_ALIASES;"
}
