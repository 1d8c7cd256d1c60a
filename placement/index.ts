export * from './model.ts';
export * from './plan-types.ts';
export * from './slots.ts';
export * from './write.ts';
