import { defineConfig } from 'vitest/config';

/**
 * unit: everything that runs in this process. cluster: real processes of the built binary, one file at a
 * time so that they do not starve each other's elections. sim: the simulated world, by seed. One after the other.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          sequence: { groupOrder: 0 },
          include: ['tests/**/*.test.ts'],
          exclude: ['tests/cluster/**', 'tests/sim/**'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'cluster',
          sequence: { groupOrder: 1 },
          include: ['tests/cluster/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'sim',
          sequence: { groupOrder: 2 },
          include: ['tests/sim/**/*.test.ts'],
          testTimeout: 240_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
