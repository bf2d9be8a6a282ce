# shellcheck shell=sh disable=SC2034  # lab_user is for the scripts that source this file
# Sourced: the lab's user, and its folders, which the variables override.
lab_user=wqlab
if [ "$(id -u)" = 0 ]; then
    : "${WQLAB_CACHE:=/var/cache/wqlab}" "${WQLAB_STATE:=/var/lib/wqlab/lab}"
else
    : "${WQLAB_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/wqlab}" "${WQLAB_STATE:=${XDG_STATE_HOME:-$HOME/.local/state}/wqlab}"
fi
export WQLAB_CACHE WQLAB_STATE
