"""Hooks that turn what pilots decide into the controls of their aircraft, and the same for one aircraft of a team."""

from __future__ import annotations

from palaestra.games.ucav.aim_macros import fly_aim, remember_aim
from palaestra.games.ucav.autopilot import steer
from palaestra.games.ucav.body import COUNT, PERIOD_S, opponent_of
from palaestra.games.ucav.inner_loop import steer_by_network
from palaestra.games.ucav.macros import MACRO_PERIODS, read_macro
from palaestra.games.ucav.weapons import note_places
from palaestra.games.ucav.weather import change_weather


def command_stick(s, world, actions, scratch):
    """Puts the stick where the pilots want it. Throttle -1..1 is 0..1 of the lever."""
    note_places(s)
    for slot in range(COUNT):
        put_stick(s, slot, actions.pilot[slot])


def put_stick(s, slot, action):
    """Puts the stick of one aircraft where its pilot wants it."""
    body = s.body[slot]
    change_weather(s, body)
    body.aileron_command = action.aileron
    body.elevator_command = action.elevator
    body.rudder_command = action.rudder
    body.throttle_command = 0.5 * (action.throttle + 1.0)
    s.last_action[slot, 0] = action.aileron
    s.last_action[slot, 1] = action.elevator
    s.last_action[slot, 2] = action.rudder
    s.last_action[slot, 3] = action.throttle


def command_macro_pid(s, world, actions, scratch):
    """Lets the cascaded PID of `palaestra.games.ucav.autopilot` fly the macro for one period."""
    note_places(s)
    for slot in range(COUNT):
        fly_macro(s, slot, actions)


def fly_macro(s, slot, actions):
    """Lets the cascaded PID fly the macro of one aircraft."""
    change_weather(s, s.body[slot])
    remember_macro(s, slot, actions.pilot[slot])
    roll, flight_path, speed = read_macro(actions.pilot[slot])
    steer(s.body[slot], s.autopilots[slot], roll, flight_path, speed)


def command_macro_network(s, world, actions, scratch):
    """Lets a trained network (`palaestra.kernels.networks`) fly the macro for one period."""
    note_places(s)
    age_s = (s.periods % MACRO_PERIODS) * PERIOD_S
    for slot in range(COUNT):
        change_weather(s, s.body[slot])
        remember_macro(s, slot, actions.pilot[slot])
        roll, flight_path, speed = read_macro(actions.pilot[slot])
        steer_by_network(
            world.weights,
            world.biases,
            world.sizes,
            scratch,
            s.body[slot],
            s.integrals[slot],
            roll,
            flight_path,
            speed,
            age_s,
        )


def command_aim(s, world, actions, scratch):
    """Points the aircraft where their pilots aim, for one period."""
    note_places(s)
    for slot in range(COUNT):
        change_weather(s, s.body[slot])
        remember_aim(s, slot, actions.pilot[slot])
        fly_aim(s, slot, opponent_of(slot))


def remember_macro(s, slot, action):
    """Notes the action for the next observation."""
    s.last_action[slot, 0] = action.roll
    s.last_action[slot, 1] = action.flight_path
    s.last_action[slot, 2] = action.speed
