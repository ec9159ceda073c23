"""Compiles an aircraft of JSBSim into one frame function: reader -> components -> frame -> generated file."""
