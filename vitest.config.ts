import { defineConfig } from 'vitest/config';

/**
 * unit: everything that runs in this process. cluster: real processes of the built binary, one file at a
 * time so that they do not starve each other's elections. sim: the simulated world, by seed.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['tests/**/*.test.ts'],
          exclude: ['tests/cluster/**', 'tests/sim/**'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['tests/cluster/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'sim',
          include: ['tests/sim/**/*.test.ts'],
          testTimeout: 240_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
