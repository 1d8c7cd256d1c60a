export * from './clock.ts';
export * from './state-machine.ts';
export * from './storage.ts';
export * from './transport.ts';
export * from './types.ts';
