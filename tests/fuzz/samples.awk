# SPDX-License-Identifier: Apache-2.0
# The lines of logs that a file of rows holds, as seeds: awk -f samples.awk ROWS.forms

/^[ \t]+(sample|more|not)[ \t]/ {
    sub(/^[ \t]+[a-z]+[ \t]+/, "")
    print
}
