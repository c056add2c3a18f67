// SPDX-License-Identifier: Apache-2.0
// What lines count, in whose words and behind whose heads ever; lines that count nothing; and how
// far each writer of a log is told to be, around faults and at the end; what a rank wrote last
// before its launcher tells of its end by a code.
#include "receivers/decode/log/progress.h"

#include "base/intern.h"
#include "base/memory.h"
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/observed.h"

static struct progress read;

static bool reads(const char *text) {
    return progress_read(slice_of(text), &read);
}

static const struct {
    const char *text;
    int64_t step, total;
    const char *epoch;
    bool of_epoch;
} COUNTING[] = {
    // steps
    {" iteration      250/    9000 | consumed samples:       256000 | lm loss: 3.1E+00 |", 250,
     9000, "", false},
    {" [2026-03-01 08:00:00] iteration     250/  9000 | elapsed time per iteration (ms): 912.1 |",
     250, 9000, "", false},
    {" [2026-03-01 08:00:00.250000] iteration  250/9000 | learning rate: 1.0E-04 |", 250, 9000, "",
     false},
    {" samples/sec: 88.125 | iteration      250/    9000 | elapsed time per iteration (ms): 9.1 |",
     250, 9000, "", false},
    {"iteration: 250 / 9000 | consumed_tokens: 1.2G | lm_loss: 3.1", 250, 9000, "", false},
    {"iteration    0 residual 1.250000e+03", 0, -1, "", false},
    {"[2026-03-01 08:00:00,250] [INFO] [logging.py:96:log_dist] [Rank 0] step=250, skipped=0, "
     "lr=[0.1]",
     250, -1, "", false},
    {"[INFO] [timer.py:1:stop] epoch=0/micro_step=500/global_step=250, CurrSamplesPerSec=6.9", 250,
     -1, "0", false},
    {"steps: 250 loss: 1.5000 iter time (s): 0.250 samples/sec: 12.500", 250, -1, "", false},
    {"step: 250  loss:  1.50000  grad_norm:  0.2500  memory: 45.30GiB(56.20%)  tps: 1,250", 250, -1,
     "", false},
    {"[titan] 2026-03-01 08:00:00,250 - root - INFO - \x1b[31mstep: 250  \x1b[32mloss:  "
     "1.5\x1b[39m",
     250, -1, "", false},
    {"2026-03-01 08:00:00,250 INFO train: step 25/40 loss 0.5", 25, 40, "", false},
    {"2026-03-01 08:00:00,250 [rank 3] INFO step 5 loss 2.4 (0.100 s/step)", 5, -1, "", false},
    {"rank 0 step 5 loss 15.5", 5, -1, "", false},
    {"[2/3] step 5 loss 0.5", 5, -1, "", false},
    {"loss=1.771 step=2500", 2500, -1, "", false},
    {"iter 250: loss 2.5000, time 512.25ms, mfu 41.50%", 250, -1, "", false},
    {"step 250/9000 | loss 2.500000 (+0.10z)| norm 0.5000 (-0.30z)| lr 5.00e-04 | 512.25 ms", 250,
     9000, "", false},
    {"Epoch 2 | iter 1000 step 250 | loss train: 2.500, val: n/a | iter time: 9.5 ms (step)", 250,
     -1, "2", false},
    {"INFO:tensorflow:loss = 0.5, step = 250 (12.125 sec)", 250, -1, "", false},
    {"completed step: 250, seconds: 5.125, TFLOP/s/device: 412.125, loss: 2.125", 250, -1, "",
     false},
    {"I0301 08:00:00.250000 140012345678912 executors.py:4] [PAX STATUS]: Beginning step `250`.",
     250, -1, "", false},
    {"[2026-03-01 08:00:00,250] [    INFO] - loss: 2.5, learning_rate: 1e-05, global_step: 250",
     250, -1, "", false},
    {"03/01 08:00:00 - mmengine - INFO - Iter(train) [ 250/9000]  lr: 1.0e-03  eta: 12:34:56", 250,
     9000, "", false},
    {"[03/01 08:00:00 d2.utils.events]:  eta: 12:34:56  iter: 250  total_loss: 2.5", 250, -1, "",
     false},
    {"step:250 - global_seqlen/min:99 - training/global_step:250 - training/epoch:1", 250, -1, "",
     false},
    {"INFO 03-01 08:00:00 ppo_trainer.py:5] \xe2\x9c\xa8 Global step 250: {'kl': 0.02}", 250, -1,
     "", false},
    {"Trial train_a_00003 finished iteration 25 at 2026-03-01 08:00:00.", 25, -1, "", false},
    {"Training finished iteration 25 at 2026-03-01 08:00:00. Total running time: 1hr", 25, -1, "",
     false},
    {"2026-03-01 08:00:00.250\tnode7:0\tolmo_core:6\tINFO\t[step=250/9000,epoch=1,eta=6h]", 250,
     9000, "1", false},
    {"[train_0/3 - step 250] should_commit=True enough_replicas=True, errored=None", 250, -1, "",
     false},
    {"[batch=250/9000]:", 250, 9000, "", false},
    {"Training epoch 0, iteration 249/8999 | lr: 0.0001 | global_step: 249 | loss: 2.5", 249, 8999,
     "0", false},
    {"2026-03-01 08:00:00 | INFO | train_inner | epoch 003:    120 / 5004 loss=2.5, "
     "num_updates=10120, lr=0.0005",
     10120, -1, "3", false},
    {"2026-03-01 08:00:00 | INFO | train | epoch 003 | loss 2.5 | num_updates 15012 | wall 7",
     15012, -1, "3", false},
    {"2026-03-01 | INFO | train_inner | {\"epoch\": 3, \"update\": 2.0, \"num_updates\": "
     "\"10120\"}",
     10120, -1, "3", false},
    {"I1115 16:00:39.451247 140641718562816 trainer.py:501] Training: step 198", 198, -1, "",
     false},
    // batches of an epoch
    {"[epoch=4][batch=120/1000]:", 120, 1000, "4", true},
    {"Epoch [3][120/5004]\tlr: 1.0e-03, eta: 12:34:56, time: 0.5", 120, 5004, "3", true},
    {"Epoch: [3][ 121/5004]\tTime  0.512 ( 0.520)\tData  0.012 ( 0.015)", 121, 5004, "3", true},
    {"Epoch: [3]  [ 120/5004]  eta: 0:42:11  lr: 0.1  loss: 2.5 (2.6)", 120, 5004, "3", true},
    {"[03/01 08:00:00] ppdet.engine INFO: Epoch: [3] [ 120/5004] learning_rate: 0.001", 120, 5004,
     "3", true},
    {"03/01 08:00:00 - mmengine - INFO - Epoch(train)  [3][ 120/5004]  lr: 1.0e-03", 120, 5004, "3",
     true},
    {"Train: 3 [ 120/1251 ( 10%)]  Loss: 2.5 (2.6)  Time: 0.512s", 120, 1251, "3", true},
    {"Train Epoch: 3 [7680/60000 (13%)]\tLoss: 0.25", 7680, 60000, "3", true},
    {"DLL 2026-03-01 08:00:00.250000 - (3, 120) loss : 2.5  lr : 0.001 ", 120, -1, "3", true},
    {"DLLL {\"timestamp\": \"17\", \"type\": \"LOG\", \"step\": [3, 120], \"data\": {}}", 120, -1,
     "3", true},
    {"[W 2026-03-01 08:00:00,250] epoch 41 batch 1200 loss 0.8", 1200, -1, "41", true},
    // epochs
    {"{'loss': 2.5, 'grad_norm': 0.5, 'learning_rate': 1.2e-05, 'epoch': 0.34}", -1, -1, "0.34",
     false},
    {"{'loss': '2.5', 'grad_norm': '0.5', 'epoch': '0.3368'}", -1, -1, "0.3368", false},
    {"Epoch 4/90", -1, -1, "4", false},
    {"[GPU3] Epoch 12 | Batchsize: 32 | Steps: 64", -1, -1, "12", false},
    {"2026-03-01 08:00:00,250 INFO rank 1: epoch 2 done", -1, -1, "2", false},
    // bars
    {"  8%|#         | 250/9000 [1:43:20<19:10:42,  1.50s/it]", 250, 9000, "", false},
    {"Steps:   8%|\xe2\x96\x8a    | 250/9000 [1:43:20<19:10:42,  1.50s/it, lr=1e-5]", 250, 9000, "",
     false},
    {"Steps:   8%|#   | 250/9000 [1:43:20<19:10:42,  1.50s/it, lr=1]11/27/2026 - INFO - x", 250,
     9000, "", false},
    {"steps:   8%|#   | 250/9000 [1:43:20<19:10:42,  1.50s/it]", 250, 9000, "", false},
    {"Training:  12%|#   | 120/1000 [01:05<07:58,  1.84it/s]", 120, 1000, "", false},
    {"  1%|    | 1/100 [00:01<01:40]\r  2%|    | 2/100 [00:02<01:38]\r", 2, 100, "", false},
    {"Epoch 3:  12%|#   | 120/1000 [01:05<07:58,  1.84it/s, v_num=0, val_loss=2.3]", 120, 1000, "3",
     true},
    {"Epoch 0: |          | 3/? [00:00<00:00,  3.39it/s, train_loss=0.666]", 3, -1, "0", true},
    {"Epoch 0: :   8%|#  | 250/9000 [1:43:20<19:10:42, v_num=0, global_step=249.0]", 250, 9000, "0",
     false},
    {"train          Epoch   3:   12%|#     | 120/1000 [01:05<07:58,  1.84ba/s, loss=2.3]", 120,
     1000, "3", true},
    {"1|250|Loss: 1.234:  12%|#   | 120/1000 [01:05<07:58,  1.84it/s]", 250, -1, "1", false},
    {"      3/100      2.31G      1.234        640:  12%|#  | 120/1000 [01:05<07:58,  1.84it/s]",
     120, 1000, "3", true},
    {"      3/100      2.31G      640: 12% \xe2\x94\x81\xe2\x94\x80 120/1000 1.8it/s 1:05<7:58",
     120, 1000, "3", true},
    {"Train step of epoch 0:  38%|#   | 120/313 [01:00<01:36,  2.00it/s]", 120, 313, "0", true},
    {"Episode [1/20]:   4%|    | 12/313 [10:00<4:10:50, 50.00s/it]", 12, 313, "1", true},
    {"120it [01:05,  1.84it/s]", 120, -1, "", false},
    {"120/1000 [==>...........................] - ETA: 7:58 - loss: 2.3", 120, 1000, "", false},
    {"1000/1000 - 545s - loss: 2.3 - accuracy: 0.4 - 545s/epoch - 545ms/step", 1000, 1000, "",
     false},
    {"step  120/1000 [==>...........................] - loss: 2.3 - ETA: 7:58", 120, 1000, "",
     false},
    {"INFO :: Progress on:train 4.12kit/50.0kit rate:2.0it/s remaining:6:22:20", 4120, 50000, "",
     false},
};

START_TEST(lines_that_count) {
    ck_assert_msg(reads(COUNTING[_i].text), "not read: %s", COUNTING[_i].text);
    ck_assert_int_eq(read.step, COUNTING[_i].step);
    ck_assert_int_eq(read.total, COUNTING[_i].total);
    ck_assert_str_eq(read.epoch, COUNTING[_i].epoch);
    ck_assert_int_eq(read.of_epoch, COUNTING[_i].of_epoch);
}
END_TEST

// Whatever breaks off, nothing is read beyond it (the sanitizers watch).
START_TEST(lines_that_break_off) {
    for (size_t size = 0; size < strlen(COUNTING[_i].text); size++) {
        char *copy = memory_take(size + 1);
        memcpy(copy, COUNTING[_i].text, size);
        progress_read((struct slice){copy, size}, &read);
        memory_give(copy);
    }
}
END_TEST

static const char *const COUNTING_NOTHING[] = {
    "",
    "12",
    // totals
    "Total optimization steps = 50,000",
    "  Num Epochs = 3",
    "setting training iterations to 50000",
    "Starting training for 100 epochs...",
    "Total training steps: 9000",
    "Training for 1000 steps.",
    "warmup steps: 100",
    "python train.py --epoch 3 --step 5",
    // evaluation
    "Evaluating iter 3/10",
    " validation loss at iteration 4000 | lm loss value: 2.2E+00 |",
    "validate step: 4000  loss:  2.2",
    "Validation DataLoader 0:  15%|#   | 12/80 [00:06<00:34,  2.00it/s]",
    "Sanity Checking DataLoader 0: 100%|##| 2/2 [00:01<00:00,  2.00it/s]",
    "[Eval batch=12/80] Eval on eval data:",
    "2026-03-01 | INFO | valid | epoch 003 | valid on 'valid' subset | num_updates 15012",
    "{'eval_loss': 2.2, 'eval_runtime': 7.1, 'epoch': 1.0}",
    "Completed eval after train step 4000, loss=2.2",
    "01/05 11:11:12 - mmengine - INFO - Epoch(val)  [3][12/80]    eta: 0:00:34",
    "[01/05 11:11:12 d2.evaluation.evaluator]: Inference done 120/5000. Eval: 0.0012 s/iter.",
    "Progress on:eval 12it/80it rate:2.0it/s",
    // parts of documents that are printed in several lines
    "    \"step\": 5,",
    "  'iteration': 5",
    "        \"phase_path\": \"epoch 3 / step 4 / data\",",
    "      \"step 7\"",
    // steps of Slurm's jobs
    "step 12.0 could not be launched on node cn4: Job credential expired",
    // rates and times
    "INFO:tensorflow:global_step/sec: 3.43296",
    "I0105 10:11:12.345678 140012345678912 programs.py:515] steps/sec: 1.234567",
    "took 5s/step 2026-03-01 08:00:00",
    // other bars
    "Loading checkpoint shards:  50%|##  | 2/4 [00:06<00:06,  3.00s/it]",
    "Map:  45%|##  | 450/1000 [00:01<00:01, 450.00 examples/s]",
    "model.safetensors:  45%|##  | 450M/1.00G [00:01<00:01, 450MB/s]",
    "Downloading data: 100%|##| 12/12 [00:00<00:00, 90.0it/s]",
    // sentences, and faults that name a step
    "saving checkpoint at iteration    4000 to /ckpt",
    "Deleting older checkpoint [out/checkpoint-3000] due to args.save_total_limit",
    "ERROR train: loss is nan (step 501)",
    "2026-03-01 08:00:00 ERROR step 7: record could not be read",
    "FloatingPointError: loss is nan at step 501",
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "01/05/2026 10:11:12 - INFO - accelerate.accelerator - Saving current state to out/c-4",
    "2026-03-01T08:00:00Z gpu-a kernel: mlx5_core 0000:5c:00.0: Port: 1 Link DOWN",
    "=> loaded checkpoint 'checkpoint.pth.tar' (epoch 3)",
};

START_TEST(lines_that_count_nothing) {
    ck_assert_msg(!reads(COUNTING_NOTHING[_i]), "%s: %d of %s", COUNTING_NOTHING[_i],
                  (int)read.step, read.epoch);
}
END_TEST

START_TEST(further) {
    static const struct {
        const char *before, *now;
        bool is_further;
    } ROWS[] = {
        {"step 5 loss 1", "step 6 loss 1", true},
        {"step 6 loss 1", "step 6 loss 2", false},
        {"step 6 loss 1", "step 0 loss 2", false},
        {"Epoch [3][5003/5004]", "Epoch [4][1/5004]", true},
        {"Epoch [4][1/5004]", "Epoch [3][5003/5004]", false},
        {"{'loss': 1, 'epoch': 0.34}", "{'loss': 1, 'epoch': 0.4}", true},
        {"{'loss': 1, 'epoch': 0.9}", "{'loss': 1, 'epoch': 0.1234567}", false},
        {"Epoch 9/90", "Epoch 10/90", true},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct progress before, now;
        ck_assert(progress_read(slice_of(ROWS[i].before), &before));
        ck_assert(progress_read(slice_of(ROWS[i].now), &now));
        ck_assert_int_eq(progress_is_further(&before, &now), ROWS[i].is_further);
    }
}
END_TEST

// -- what is told of a log
// --------------------------------------------------------------------------

// Whatever is told of the log, an event a line.
static const char *told(const char *log) {
    observed_ends = true;
    return observed_lines(&decoder_log, slice_of(log))->text;
}

#define RAISED                                                                                     \
    "Traceback (most recent call last):\n"                                                         \
    "  File \"a.py\", line 1, in f\n"                                                              \
    "    g()\n"                                                                                    \
    "KeyError: 'label'\n"

START_TEST(told_at_the_end) {
    ck_assert_str_eq(told("step 1 loss 2\nstep 2 loss 2\nstep 3 loss 2\nbye\n"),
                     "3+0 progress - state=counting count=2 iteration=3\n");
    ck_assert_str_eq(told("nothing\nof that kind\n"), "");
}
END_TEST

START_TEST(told_around_a_fault) {
    ck_assert_str_eq(
        told("step 1/9 loss 2\nstep 2/9 loss 2\n" RAISED "step 3/9 loss 2\n"
             "step 4/9 loss 2\nstep 5/9 loss 2\n"),
        "2+0 progress - state=counting count=1 iteration=2 total=9\n"
        "3+4 exception - exception=KeyError message='label' victim=no frame=f (a.py:1)\n"
        "8+0 progress - state=counting count=2 iteration=4 total=9\n"
        "9+0 progress - state=counting count=1 iteration=5 total=9\n");
}
END_TEST

// A bar is drawn once more when its program ends by a fault.
START_TEST(told_of_bars) {
    ck_assert_str_eq(
        told(" 20%|##  | 2/9 [00:02<00:08]\n" RAISED " 30%|##  | 3/9 [00:02<00:08]\n"),
        "1+0 progress - state=counting count=0 iteration=2 total=9\n"
        "2+4 exception - exception=KeyError message='label' victim=no frame=f (a.py:1)\n"
        "6+0 progress - state=counting count=0 iteration=3 total=9\n");
}
END_TEST

START_TEST(told_of_each_writer) {
    ck_assert_str_eq(told("[rank0]: step 1 loss 2\n[rank1]: step 1 loss 2\n[rank0]: step 2 loss 2\n"
                          "[rank1]: step 2 loss 2\n"),
                     "3+0 progress - rank=0 state=counting count=1 iteration=2\n"
                     "4+0 progress - rank=1 state=counting count=1 iteration=2\n");
}
END_TEST

START_TEST(told_when_it_begins_anew) {
    ck_assert_str_eq(
        told("step 7 loss 2\n" RAISED "step 0 loss 2\nstep 9 loss 2\n"),
        "1+0 progress - state=counting count=0 iteration=7\n"
        "2+4 exception - exception=KeyError message='label' victim=no frame=f (a.py:1)\n"
        "7+0 progress - state=counting count=0 restarts=1 iteration=9\n");
}
END_TEST

// What is followed may be read on from behind any line.
START_TEST(nothing_is_told_of_what_is_followed) {
    observed_ends = false;
    ck_assert_str_eq(observed_lines(&decoder_log, SLICE("step 1 loss 2\nstep 2 loss 2\n"))->text,
                     "");
}
END_TEST

// transformers: a bar of steps, a record of epochs, and a bar of the evaluation in between.
START_TEST(told_of_several_counters) {
    ck_assert_str_eq(told(" 20%|##  | 20/90 [00:02<00:08]\n{'loss': 2, 'epoch': 0.5}\n"
                          "100%|####| 7/7 [00:02<00:08]\n"),
                     "2+0 progress - state=counting count=0 iteration=20 total=90 epoch=0.5\n");
}
END_TEST

// -- what was written last ------------------------------------------------------------------------

#define ABORT_OF_3                                                                                 \
    "Abort(5) on node 3: application called MPI_Abort(MPI_COMM_WORLD, 5) - process 3\n"

// Whether the report of a launcher, the only event but for progress, goes with this; NULL: nothing.
static void check_last(const char *log, const char *last) {
    const char *at = strstr(told(log), "last_message=");
    ck_assert_msg((at == NULL) == (last == NULL), "%s", log);
    if (last != NULL)
        ck_assert_msg(strncmp(at + strlen("last_message="), last, strlen(last)) == 0, "%s", at);
}

START_TEST(a_code_goes_with_what_was_written_last) {
    static const char *const ROWS[][2] = {
        // its writer's last line, whatever others write behind it
        {"[rank3]: mesh is torn\n[rank1]: going on\n[rank3]: ----\n" ABORT_OF_3, "mesh is torn"},
        {"[rank2]: mesh is torn\n" ABORT_OF_3, NULL},
        {"0: up\n0: fine\n0: well\n3: mesh is torn\n0: fine\n"
         "srun: error: n2: task 3: Exited with exit code 4\n",
         "mesh is torn"},
        // of writers that nobody names the last that names the rank
        {"x: rank 3: mesh is torn\nhello\n" ABORT_OF_3, "x: rank 3: mesh is torn"},
        {"x: rank 31: mesh is torn\nlocal rank 3: torn\nlocal_rank 3: torn\n" ABORT_OF_3, NULL},
        {"mesh is torn\n" ABORT_OF_3, NULL},
        // that each of them writes
        {"x: rank 2 of 4 is up\nx: rank 3 of 4 is up\n" ABORT_OF_3, NULL},
        // it went on behind it
        {"x: rank 3: mesh is torn\nstep 8 loss 2\n" ABORT_OF_3, NULL},
        {"[rank3]: mesh is torn\n[rank3]: step 8 loss 2\n" ABORT_OF_3, NULL},
        // behind a report comes what the launcher says of it
        {"x: rank 3: mesh is torn\n----\nMPI_ABORT was invoked on rank 3 in communicator "
         "MPI_COMM_WORLD\nwith errorcode 12.\n\nNOTE: all goes down, rank 3 first\n----\n",
         "x: rank 3: mesh is torn"},
        // without a code, or with 0, nothing was left
        {"x: rank 3: mesh is torn\nmpirun noticed that process rank 3 with PID 7 on node n1 "
         "exited on signal 9 (Killed).\n",
         NULL},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        check_last(ROWS[i][0], ROWS[i][1]);
}
END_TEST

START_TEST(a_long_last_line_is_shortened) {
    static char log[2048];
    size_t used = (size_t)snprintf(log, sizeof log, "[rank3]: mesh is torn");
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(log + used, sizeof log - used, " and torn");
    snprintf(log + used, sizeof log - used, "\n%s", ABORT_OF_3);
    const char *at = strstr(told(log), "last_message=");
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_lt(strlen(at), 300);
}
END_TEST

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

int main(void) {
    Suite *suite = suite_create("progress");
    TCase *cases = tcase_create("progress");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, lines_that_count, 0, sizeof COUNTING / sizeof *COUNTING);
    tcase_add_loop_test(cases, lines_that_break_off, 0, sizeof COUNTING / sizeof *COUNTING);
    tcase_add_loop_test(cases, lines_that_count_nothing, 0,
                        sizeof COUNTING_NOTHING / sizeof *COUNTING_NOTHING);
    tcase_add_test(cases, further);
    tcase_add_test(cases, told_at_the_end);
    tcase_add_test(cases, told_around_a_fault);
    tcase_add_test(cases, told_of_bars);
    tcase_add_test(cases, told_of_each_writer);
    tcase_add_test(cases, told_when_it_begins_anew);
    tcase_add_test(cases, nothing_is_told_of_what_is_followed);
    tcase_add_test(cases, told_of_several_counters);
    tcase_add_test(cases, a_code_goes_with_what_was_written_last);
    tcase_add_test(cases, a_long_last_line_is_shortened);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
