// SPDX-License-Identifier: Apache-2.0
// What the machine needs to touch the bytes of a file, whatever is done with them.
//
//   bench_limits FILE
//
// CPU time of one thread, the best of some rounds: read() of the whole file in blocks of 256 KiB
// into one buffer, and reading all of its words from memory, which is its bandwidth
// when the file is larger than the caches. One JSON object.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 256 << 10, ROUNDS = 5, LANES = 4 };

static void fail(const char *what) {
    fprintf(stderr, "bench_limits: %s: %s\n", what, strerror(errno));
    exit(74);
}

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double read_all(int file) {
    char *block = malloc(BLOCK);
    if (block == NULL || lseek(file, 0, SEEK_SET) != 0)
        fail("beginning to read");
    double before = cpu_s();
    ssize_t got;
    while ((got = read(file, block, BLOCK)) > 0)
        ;
    if (got < 0)
        fail("read");
    double spent = cpu_s() - before;
    free(block);
    return spent;
}

// Independent sums, so that the processor waits for memory and not for additions.
static double touch_all(const uint64_t *words, size_t count, uint64_t *sum) {
    uint64_t lanes[LANES] = {0};
    double before = cpu_s();
    for (size_t i = 0; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += words[i + (size_t)lane];
    double spent = cpu_s() - before;
    for (int lane = 0; lane < LANES; lane++)
        *sum += lanes[lane];
    return spent;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 64;
    }
    int file = open(argv[1], O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
        fail(argv[1]);
    if (status.st_size < BLOCK) {
        fprintf(stderr, "bench_limits: %s is too small\n", argv[1]);
        return 65;
    }
    size_t size = (size_t)status.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    if (bytes == MAP_FAILED)
        fail("mmap");
    double read_s = 1e9, memory_s = 1e9;
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double spent = read_all(file);
        read_s = spent < read_s ? spent : read_s;
        spent = touch_all(bytes, size / sizeof(uint64_t), &sum);
        memory_s = spent < memory_s ? spent : memory_s;
    }
    printf("{\"bytes\":%zu,\"read_s\":%.4f,\"memory_s\":%.4f,\"sum\":\"%" PRIx64 "\"}\n", size,
           read_s, memory_s, sum);
    munmap(bytes, size);
    close(file);
    return 0;
}
