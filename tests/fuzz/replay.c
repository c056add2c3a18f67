// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target once over nothing, each file that is given and each file of a directory,
// without libFuzzer: what it found before stays found, under any compiler. Leaves its count for
// ./test.sh.
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

__attribute__((weak)) int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    return 0;
}

enum { INPUT_MAX = 64 << 20 };

static unsigned done;

static void replay_file(const char *path, off_t size) {
    FILE *file = fopen(path, "rb");
    require(file != NULL && size <= INPUT_MAX);
    uint8_t *bytes = malloc((size_t)size + 1);
    require(bytes != NULL && fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    // Said first: when it crashes, this is the last line.
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
    done++;
}

static void replay(const char *path) {
    struct stat status;
    require(stat(path, &status) == 0);
    if (S_ISREG(status.st_mode)) {
        replay_file(path, status.st_size);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    require(count >= 0);
    for (int i = 0; i < count; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            replay(inner);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv) {
    LLVMFuzzerInitialize(&argc, &argv);
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    done++;
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    const char *result = getenv("CULPRIT_RESULT_FILE");
    FILE *file = result == NULL ? NULL : fopen(result, "w");
    if (file != NULL) {
        fprintf(file, "%u 0\n", done);
        fclose(file);
    }
    printf("%u inputs\n", done);
    return 0;
}
