import { Worker } from 'node:worker_threads';

const ENTRY = new URL('../../src/control/planner-worker.ts', import.meta.url);

/** The planner's thread from the sources: a loader for TypeScript first, then its file. */
export function spawnPlannerFromSources(): Worker {
  const boot = `
    import('tsx/esm/api').then(({ register }) => {
      register();
      return import(${JSON.stringify(ENTRY.href)});
    });`;
  return new Worker(boot, { eval: true, name: 'planner' });
}
