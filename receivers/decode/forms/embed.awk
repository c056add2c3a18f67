# SPDX-License-Identifier: Apache-2.0
# Makes C of files of rows: awk -f embed.awk rows/*.forms

BEGIN {
    print "#include \"receivers/decode/forms/builtin.h\""
    print "#include <stddef.h>"
    print "const struct builtin_forms BUILTIN_FORMS[] = {"
}

FNR == 1 {
    if (NR > 1)
        print "    },"
    name = FILENAME
    sub(/.*\//, "", name)
    print "    {\"" name "\","
}

{
    gsub(/["\\]/, "\\\\&")
    print "    \"" $0 "\\n\""
}

END {
    if (NR > 0)
        print "    },"
    print "    {NULL, NULL}};"
}
