import { setFlagsFromString } from 'node:v8';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Rows and steps come in by the hundred thousand and most live on: with the usual 16 MiB they are copied too often. */
const SEMI_SPACE_MIB = 32;

const OPTIONS: WorkerOptions = { name: 'planner' };

/** The thread's own file beside this one: as built or, where this one runs as written, through tsx, which reads it. */
export function spawnPlanner(): Worker {
  // Not by `resourceLimits`, which the flag that keeps this thread's own young generation small would overrule.
  setFlagsFromString(`--max-semi-space-size=${SEMI_SPACE_MIB}`);
  if (!import.meta.url.endsWith('.ts')) {
    return new Worker(new URL('./planner-worker.js', import.meta.url), OPTIONS);
  }
  const source = new URL('./planner-worker.ts', import.meta.url).href;
  const boot = `
    import('tsx/esm/api').then(({ register }) => {
      register();
      return import(${JSON.stringify(source)});
    });`;
  return new Worker(boot, { ...OPTIONS, eval: true });
}
