// SPDX-License-Identifier: Apache-2.0
// What the page brings along: its style and its script, made by embed.awk of page.css and page.js.
// Constants, so that their hashes can stand in the page's policy.
#pragma once

extern const char page_style[];
// The page is whole without it. Reads the lines that are there, and writes text nodes only.
extern const char page_script[];
// Of a page that is served: asks for newer ones, and exchanges what differs.
extern const char live_script[];
