# SPDX-License-Identifier: Apache-2.0
# Makes C of what the page brings along: awk -f embed.awk page.css page.js live.js
# Comments /* … */ that begin a line are left out, with their whole lines.

BEGIN { print "#include \"exporters/report/page/style.h\"" }

FNR == 1 {
    if (NR > 1)
        print "    ;"
    print "const char " (FILENAME ~ /css$/ ? "page_style" : FILENAME ~ /live\.js$/ ? "live_script" : "page_script") "[] ="
}

/^\/\*/ { comment = 1 }

!comment {
    gsub(/["\\]/, "\\\\&")
    print "    \"" $0 "\\n\""
}

/\*\/$/ { comment = 0 }

END { print "    ;" }
