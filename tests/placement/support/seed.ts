/** Where random tests begin. Every title prints it; EVENKEEL_SEED is another. */
export const SEED = Number(process.env['EVENKEEL_SEED'] ?? 19_507);
/** How many times as many clusters they try (EVENKEEL_RUNS). */
export const RUNS = Number(process.env['EVENKEEL_RUNS'] ?? 1);
